// The tree over a long row's chunks. The block that finishes a node's last child merges the node and climbs
// on: nobody waits, and since every merge is exact, who arrives last changes no bit.
//
// A node whose chunks hold few vertices gathers them and sweeps them to their hull; any other merges its
// children pairwise by bridges, in place. Either way the result is one range of vertices a chunk: nothing
// moves ('Merge Hulls Without Copying Vertices', Section 3.3, Theorem 4.4).
#pragma once

#include <cstdint>

#include "cuda/hull.cuh"
#include "cuda/plan.cuh"

namespace isofold::cuda {

inline constexpr int kGatherCapacity = 2048;

// What other blocks wrote is read past the first-level cache, which is not coherent.
template <class T>
__device__ T load_fresh(const T* address) {
  static_assert(sizeof(T) % 4 == 0);
  T result;
  if constexpr (sizeof(T) % 8 == 0) {
    const auto* from = reinterpret_cast<const unsigned long long*>(address);
    auto* to = reinterpret_cast<unsigned long long*>(&result);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / 8); ++i) to[i] = __ldcg(from + i);
  } else {
    const auto* from = reinterpret_cast<const unsigned*>(address);
    auto* to = reinterpret_cast<unsigned*>(&result);
#pragma unroll
    for (int i = 0; i < static_cast<int>(sizeof(T) / 4); ++i) to[i] = __ldcg(from + i);
  }
  return result;
}

__device__ inline SpanSums operator+(const SpanSums& a, const SpanSums& b) {
  return {a.total + b.total,         a.weight + b.weight,
          a.magnitude + b.magnitude, a.weight_magnitude + b.weight_magnitude,
          min(a.unit, b.unit),       min(a.weight_unit, b.weight_unit)};
}

template <class E>
struct SpanErrors {
  double total;
  double weight;
  __device__ explicit SpanErrors(const SpanSums& sums)
      : total(pair_error(sums.magnitude, sums.unit, E::kWeighted)),
        weight(E::kWeighted ? pair_error(sums.weight_magnitude, sums.weight_unit, false) : 0.0) {}
};

// One node: its chunks and what is known of their sums.
template <class E>
struct Node {
  const Plan<E>& plan;
  LongRowPlace place;
  int level;
  std::int64_t first_chunk;  // in the row
  std::int64_t end_chunk;
  SpanSums sums;

  __device__ std::int64_t begin() const { return first_chunk * kLongChunk; }
  __device__ std::int64_t end() const {
    const std::int64_t at = end_chunk * kLongChunk;
    return at < place.row.length ? at : place.row.length;
  }
  __device__ ChunkRecord record(std::int64_t chunk) const {
    return load_fresh(plan.chunks + place.row.first_chunk + chunk);
  }
  __device__ const Slot<E>& slot(std::int64_t chunk) const {
    return plan.slots[place.row.first_chunk + chunk];
  }
  __device__ std::uint32_t* live_word(std::int64_t chunk) const {
    return plan.live + node_id(place, 1, chunk / kFanIn);
  }

  // The sums from the node's start to a chunk's.
  __device__ Base base(std::int64_t chunk) const {
    Base sum{};
    for (int l = level - 1; l >= 0; --l) {
      const Base step = load_fresh(plan.bases[l] + node_id(place, l, chunk >> (5 * l)));
      sum.total = sum.total + step.total;
      if constexpr (E::kWeighted) sum.weight = sum.weight + step.weight;
    }
    return sum;
  }
};

// Where a list holds the last entry at or before a position.
template <class E>
__device__ int last_listed(const Slot<E>& slot, int low, int high, int position) {
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (static_cast<int>(__ldcg(slot.places + middle)) <= position) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

// A node's live vertices for ChainBridge, asked by a whole warp in step: the elements of a point's tile are
// summed by all its lanes. Indices are the row's. `end` bounds the right chain.
template <class E>
struct NodeChain {
  using Point = isofold::Point;
  const Node<E>& node;
  std::int64_t end;
  double error;
  double weight_error;

  __device__ Point point(std::int64_t index) const {
    Point p{index, {{static_cast<double>(index - node.begin()), 0.0}, weight_error}, {{}, error}};
    if (index == node.end()) {
      p.total.value = node.sums.total;
      if constexpr (E::kWeighted) p.weight.value = node.sums.weight;
      return p;
    }
    const std::int64_t chunk = index / kLongChunk;
    const int position = static_cast<int>(index % kLongChunk);
    const Base base = node.base(chunk);
    p.total.value = base.total;
    if constexpr (E::kWeighted) p.weight.value = base.weight;
    if (position == 0) return p;
    const ChunkRecord record = node.record(chunk);
    const Slot<E>& slot = node.slot(chunk);
    const int entry = record.count > 0 ? last_listed(slot, 0, record.count - 1, position) : position / kTile;
    DoubleDouble total{__ldcg(slot.total_high + entry),
                       record.exact != 0 ? 0.0 : __ldcg(slot.total_low + entry)};
    DoubleDouble weight{};
    if constexpr (E::kWeighted) weight = {__ldcg(slot.weight_high + entry), __ldcg(slot.weight_low + entry)};
    if (record.count == 0) {
      const E row = node.plan.elements.from(node.place.row.begin + chunk * kLongChunk);
      const int k = entry * kTile + static_cast<int>(threadIdx.x) % 32;
      DoubleDouble part{};
      DoubleDouble weight_part{};
      if (k < position) {
        if constexpr (E::kWeighted) {
          const TwoTerms product = two_product(row.weight(k), row.value(k));
          part = {product.high, product.low};
          weight_part = {row.weight(k), 0.0};
        } else {
          part = {row.value(k), 0.0};
        }
      }
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        part = part + DoubleDouble{__shfl_xor_sync(0xffffffffU, part.high, step),
                                   __shfl_xor_sync(0xffffffffU, part.low, step)};
        if constexpr (E::kWeighted) {
          weight_part = weight_part + DoubleDouble{__shfl_xor_sync(0xffffffffU, weight_part.high, step),
                                                   __shfl_xor_sync(0xffffffffU, weight_part.low, step)};
        }
      }
      total = total + part;
      weight = weight + weight_part;
    }
    p.total.value = p.total.value + total;
    if constexpr (E::kWeighted) p.weight.value = p.weight.value + weight;
    return p;
  }

  __device__ bool is_vertex(const Point& a, const Point& b, const Point& d) const {
    return certified_vertex(node.plan.elements.from(node.place.row.begin), a, b, d);
  }

  __device__ std::int64_t at_or_before(std::int64_t index) const {
    if (index >= end) return end;
    std::int64_t chunk = index / kLongChunk;
    const int position = static_cast<int>(index % kLongChunk);
    std::uint32_t word = __ldcg(node.live_word(chunk));
    if ((word >> (chunk % 32) & 1U) != 0) {
      const ChunkRecord record = node.record(chunk);
      if (record.first <= position) return chunk * kLongChunk + inside_before(chunk, record, position);
    }
    word &= (1U << (chunk % 32)) - 1U;
    std::int64_t group = chunk / 32;
    while (word == 0) word = __ldcg(node.live_word(--group * 32));
    chunk = group * 32 + 31 - __clz(static_cast<int>(word));
    return chunk * kLongChunk + node.record(chunk).last;
  }

  __device__ std::int64_t at_or_after(std::int64_t index) const {
    if (index >= end) return end;
    std::int64_t chunk = index / kLongChunk;
    const int position = static_cast<int>(index % kLongChunk);
    std::uint32_t word = __ldcg(node.live_word(chunk));
    if ((word >> (chunk % 32) & 1U) != 0) {
      const ChunkRecord record = node.record(chunk);
      if (record.last >= position) {
        const std::int64_t found = chunk * kLongChunk + inside_after(chunk, record, position);
        return found < end ? found : end;
      }
    }
    word &= chunk % 32 == 31 ? 0U : ~0U << (chunk % 32 + 1);
    std::int64_t group = chunk / 32;
    const std::int64_t last_group = (node.end_chunk - 1) / 32;
    while (word == 0) {
      if (++group > last_group) return end;
      word = __ldcg(node.live_word(group * 32));
    }
    chunk = group * 32 + __ffs(static_cast<int>(word)) - 1;
    if (chunk * kLongChunk >= end) return end;
    return chunk * kLongChunk + node.record(chunk).first;
  }

 private:
  __device__ int inside_before(std::int64_t chunk, const ChunkRecord& record, int position) const {
    if (position >= record.last) return record.last;
    const Slot<E>& slot = node.slot(chunk);
    if (record.count > 0) {
      const int entry = last_listed(slot, record.first_ordinal, record.last_ordinal, position);
      return static_cast<int>(__ldcg(slot.places + entry));
    }
    int word = position / kTile;
    std::uint32_t bits = __ldcg(slot.places + word) & (~0U >> (kTile - 1 - position % kTile));
    while (bits == 0) bits = __ldcg(slot.places + --word);
    return word * kTile + 31 - __clz(static_cast<int>(bits));
  }
  __device__ int inside_after(std::int64_t chunk, const ChunkRecord& record, int position) const {
    if (position <= record.first) return record.first;
    const Slot<E>& slot = node.slot(chunk);
    if (record.count > 0) {
      const int entry = last_listed(slot, record.first_ordinal, record.last_ordinal, position - 1) + 1;
      return static_cast<int>(__ldcg(slot.places + entry));
    }
    int word = position / kTile;
    std::uint32_t bits = __ldcg(slot.places + word) & (~0U << (position % kTile));
    while (bits == 0) bits = __ldcg(slot.places + ++word);
    return word * kTile + __ffs(static_cast<int>(bits)) - 1;
  }
};

template <class E>
struct NodeScratch {
  PointList<E::kWeighted, kGatherCapacity> list;
  int counts[kGatherCapacity / 32];
  int cut;  // some merge has removed a vertex
  bool bends[kFanIn];
  std::int32_t live_chunks[kGatherCapacity];  // of the node, in order
  std::int16_t first_places[kGatherCapacity];
};

struct SharedNode {
  SpanSums sums;
  int last_arriver;
};

// Sums of the children, where each stands, and the node's own.
template <class E>
__device__ void sum_children(Node<E>& node, std::int64_t number, SharedNode* shared) {
  if (threadIdx.x < 32) {
    const int lane = static_cast<int>(threadIdx.x);
    const std::int64_t child = number * kFanIn + lane;
    const std::int64_t span = std::int64_t{1} << (5 * (node.level - 1));
    const bool present = child * span < node.end_chunk;
    const std::int64_t id = node_id(node.place, node.level - 1, child);
    SpanSums mine{{}, {}, 0.0, 0.0, UnitTracker::kNone, UnitTracker::kNone};
    if (present) mine = load_fresh(node.plan.sums[node.level - 1] + id);
    SpanSums inclusive = mine;
    constexpr unsigned kAll = 0xffffffffU;
    for (int step = 1; step < 32; step *= 2) {
      SpanSums lower;
      lower.total = {__shfl_up_sync(kAll, inclusive.total.high, step),
                     __shfl_up_sync(kAll, inclusive.total.low, step)};
      lower.weight = {__shfl_up_sync(kAll, inclusive.weight.high, step),
                      __shfl_up_sync(kAll, inclusive.weight.low, step)};
      lower.magnitude = __shfl_up_sync(kAll, inclusive.magnitude, step);
      lower.weight_magnitude = __shfl_up_sync(kAll, inclusive.weight_magnitude, step);
      lower.unit = __shfl_up_sync(kAll, inclusive.unit, step);
      lower.weight_unit = __shfl_up_sync(kAll, inclusive.weight_unit, step);
      if (lane >= step) inclusive = lower + inclusive;
    }
    Base base;
    base.total = {__shfl_up_sync(kAll, inclusive.total.high, 1),
                  __shfl_up_sync(kAll, inclusive.total.low, 1)};
    base.weight = {__shfl_up_sync(kAll, inclusive.weight.high, 1),
                   __shfl_up_sync(kAll, inclusive.weight.low, 1)};
    if (lane == 0) base = {};
    if (present) node.plan.bases[node.level - 1][id] = base;
    if (lane == 31) {
      inclusive.magnitude *= 1 + 0x1p-40;
      inclusive.weight_magnitude *= 1 + 0x1p-40;
      shared->sums = inclusive;
      node.plan.sums[node.level][node_id(node.place, node.level, number)] = inclusive;
    }
  }
  __syncthreads();
  node.sums = shared->sums;
}

// The node's hull from a gathered list of its vertices, if they are few. Returns whether they were.
template <class E>
__device__ __noinline__ bool merge_by_gathering(const Node<E>& node, const Team<kBlock>& team,
                                                NodeScratch<E>& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t chunks = node.end_chunk - node.first_chunk;
  const std::int64_t share = (chunks + kBlock - 1) / kBlock;
  const std::int64_t begin = node.first_chunk + thread * share;
  const std::int64_t end = begin + share < node.end_chunk ? begin + share : node.end_chunk;
  const auto for_each_live = [&](auto&& visit) {
    for (std::int64_t chunk = begin; chunk < end;) {
      std::uint32_t word = __ldcg(node.live_word(chunk)) >> (chunk % 32);
      const std::int64_t stop =
          min(static_cast<long long>((chunk / 32 + 1) * 32), static_cast<long long>(end));
      for (; chunk < stop && word != 0; ++chunk, word >>= 1) {
        if ((word & 1U) != 0) visit(chunk);
      }
      chunk = stop;
    }
  };
  int count = 0;
  int live = 0;
  for_each_live([&](std::int64_t chunk) {
    if (count > kGatherCapacity) return;
    const ChunkRecord record = node.record(chunk);
    count += record.count > 0 ? record.last_ordinal - record.first_ordinal + 1 : kGatherCapacity + 1;
    ++live;
  });
  const auto places = team.scan(count);
  if (__syncthreads_or(count > kGatherCapacity) != 0 || places.all >= kGatherCapacity) return false;
  const auto ranks = team.scan(live);
  {
    int place = places.before;
    int rank = ranks.before;
    for_each_live([&](std::int64_t chunk) {
      const ChunkRecord record = node.record(chunk);
      scratch.live_chunks[rank] = static_cast<std::int32_t>(chunk - node.first_chunk);
      scratch.first_places[rank] = static_cast<std::int16_t>(place);
      place += record.last_ordinal - record.first_ordinal + 1;
      ++rank;
    });
  }
  __syncthreads();
  auto& list = scratch.list;
  for (int place = thread; place < places.all; place += kBlock) {
    int low = 0;
    int high = ranks.all - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (scratch.first_places[middle] <= place) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const std::int64_t chunk = node.first_chunk + scratch.live_chunks[low];
    const ChunkRecord record = node.record(chunk);
    const Slot<E>& slot = node.slot(chunk);
    const Base base = node.base(chunk);
    const int entry = record.first_ordinal + place - scratch.first_places[low];
    const DoubleDouble total{__ldcg(slot.total_high + entry),
                             record.exact != 0 ? 0.0 : __ldcg(slot.total_low + entry)};
    DoubleDouble weight{};
    if constexpr (E::kWeighted) {
      weight = base.weight + DoubleDouble{__ldcg(slot.weight_high + entry), __ldcg(slot.weight_low + entry)};
    }
    list.set(place, chunk * kLongChunk + static_cast<int>(__ldcg(slot.places + entry)), base.total + total,
             weight, entry);
  }
  if (thread == 0) list.set(places.all, node.end(), node.sums.total, node.sums.weight, 0);
  __syncthreads();
  const SpanErrors<E> errors(node.sums);
  const E row = node.plan.elements.from(node.place.row.begin);
  const SpanFacts span{node.sums.magnitude, node.sums.weight_magnitude, errors.total, errors.weight};
  list.number(places.all + 1);
  const int left = sweep_block<kGatherCapacity>(
      list.order, places.all + 1, kFewPoints, scratch.counts, [&](int a, int b, int d) {
        const Turn quick = list.quick_turn(a, b, d, span);
        if (quick != Turn::undecided) return quick == Turn::up;
        return certified_vertex(row, list.point(a, errors.total, errors.weight),
                                list.point(b, errors.total, errors.weight),
                                list.point(d, errors.total, errors.weight));
      });
  for (std::int64_t chunk = node.first_chunk + 32 * thread; chunk < node.end_chunk; chunk += 32 * kBlock) {
    *node.live_word(chunk) = 0;
  }
  __syncthreads();
  const auto chunk_of = [&](int i) { return list.index[list.order[i]] / kLongChunk; };
  for (int i = thread; i < left - 1; i += kBlock) {
    const std::int64_t chunk = chunk_of(i);
    ChunkRecord* record = node.plan.chunks + node.place.row.first_chunk + chunk;
    const int position = static_cast<int>(list.index[list.order[i]] % kLongChunk);
    const int ordinal = list.ordinal[list.order[i]];
    if (i == 0 || chunk_of(i - 1) != chunk) {
      record->first = position;
      record->first_ordinal = ordinal;
      atomicOr(node.live_word(chunk), 1U << (chunk % 32));
    }
    if (i == left - 2 || chunk_of(i + 1) != chunk) {
      record->last = position;
      record->last_ordinal = ordinal;
    }
  }
  return true;
}

// Links two neighbouring runs of chunks of a node by their bridge. One warp.
template <class E>
__device__ __noinline__ void merge_pair(const Node<E>& node, std::int64_t first, std::int64_t middle,
                                        std::int64_t end) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const SpanErrors<E> errors(node.sums);
  const std::int64_t end_index = end == node.end_chunk ? node.end() : end * kLongChunk;
  const NodeChain<E> chain{node, end_index, errors.total, errors.weight};
  const ChainBridge<NodeChain<E>> bridge(
      chain, first * kLongChunk, chain.at_or_before(middle * kLongChunk - 1), middle * kLongChunk, end_index);
  const std::int64_t left = bridge.left();
  const std::int64_t right = bridge.right();
  __syncwarp();
  if (lane == 0) {
    const std::int64_t left_chunk = left / kLongChunk;
    ChunkRecord* record = node.plan.chunks + node.place.row.first_chunk + left_chunk;
    const ChunkRecord old = node.record(left_chunk);
    record->last = static_cast<int>(left % kLongChunk);
    if (old.count > 0) {
      record->last_ordinal =
          last_listed(node.slot(left_chunk), old.first_ordinal, old.last_ordinal, record->last);
    }
    if (right < end_index) {
      const std::int64_t right_chunk = right / kLongChunk;
      ChunkRecord* after = node.plan.chunks + node.place.row.first_chunk + right_chunk;
      const ChunkRecord old_after = node.record(right_chunk);
      after->first = static_cast<int>(right % kLongChunk);
      if (old_after.count > 0) {
        after->first_ordinal = last_listed(node.slot(right_chunk), old_after.first_ordinal,
                                           old_after.last_ordinal, after->first);
      }
    }
  }
  // The chunks strictly between the two ends die.
  const std::int64_t from = left / kLongChunk + 1;
  const std::int64_t to = right < end_index ? right / kLongChunk : end;
  for (std::int64_t group = from / 32 + lane; group * 32 < to; group += 32) {
    std::uint32_t gone = ~0U;
    if (group * 32 < from) gone &= ~0U << (from - group * 32);
    if (group * 32 + 32 > to) gone &= ~(~0U << (to - group * 32));
    if (gone != 0) atomicAnd(node.live_word(group * 32), ~gone);
  }
}

// Whether the diagram bends up where one child ends and the next begins, between their vertices next to
// there.
template <class E>
__device__ __noinline__ bool joint_bends(const Node<E>& node, std::int64_t middle) {
  const SpanErrors<E> errors(node.sums);
  const NodeChain<E> chain{node, node.end(), errors.total, errors.weight};
  const std::int64_t joint = middle * kLongChunk;
  return chain.is_vertex(chain.point(chain.at_or_before(joint - 1)), chain.point(joint),
                         chain.point(chain.at_or_after(joint + 1)));
}

// Pairwise, in five rounds. Joints that bend up from the start need no bridge as long as nothing has been
// cut.
template <class E>
__device__ void merge_by_bridges(const Node<E>& node, NodeScratch<E>& scratch) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t span = std::int64_t{1} << (5 * (node.level - 1));
  if (threadIdx.x == 0) scratch.cut = 0;
  for (int child = 1 + warp; child < kFanIn; child += kBlock / 32) {
    const std::int64_t middle = node.first_chunk + child * span;
    if (middle >= node.end_chunk) break;
    const bool bends = joint_bends(node, middle);
    if (threadIdx.x % 32 == 0) scratch.bends[child] = bends;
  }
  __syncthreads();
  for (int reach = 1; reach < kFanIn; reach *= 2) {
    const bool cut = scratch.cut != 0;  // in an earlier round: this one's pairs do not touch each other
    __syncthreads();
    for (int pair = warp; pair * 2 * reach + reach < kFanIn; pair += kBlock / 32) {
      const std::int64_t first = node.first_chunk + pair * 2 * reach * span;
      const std::int64_t middle = first + reach * span;
      if (middle >= node.end_chunk) break;
      if (!cut && scratch.bends[(2 * pair + 1) * reach]) continue;
      if (threadIdx.x % 32 == 0) atomicExch(&scratch.cut, 1);
      const std::int64_t end = middle + reach * span;
      merge_pair(node, first, middle, end < node.end_chunk ? end : node.end_chunk);
    }
    __threadfence();
    __syncthreads();
  }
}

// Called by the whole block once its chunk is stored.
template <class E>
__device__ void climb(const Plan<E>& plan, const LongRowPlace& place, std::int64_t chunk,
                      NodeScratch<E>& scratch, SharedNode* shared, const Team<kBlock>& team) {
  std::int64_t children = place.row.chunks;  // in the row, at the level below
  std::int64_t number = chunk;
  std::int64_t span = 1;
  for (int level = 1; children > 1; ++level) {
    number /= kFanIn;
    span *= kFanIn;
    const std::int64_t expected =
        min(static_cast<long long>(kFanIn), static_cast<long long>(children - number * kFanIn));
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
      const int arrived = atomicAdd(plan.arrivals[level] + node_id(place, level, number), 1);
      shared->last_arriver = arrived == expected - 1;
    }
    __syncthreads();
    if (shared->last_arriver == 0) return;
    __threadfence();
    const std::int64_t first = number * span;
    Node<E> node{plan,
                 place,
                 level,
                 first,
                 min(static_cast<long long>(first + span), static_cast<long long>(place.row.chunks)),
                 {}};
    if (level == 1 && threadIdx.x == 0) {
      *node.live_word(first) = expected == 32 ? ~0U : (1U << expected) - 1U;
      __threadfence();
    }
    sum_children(node, number, shared);
    __threadfence();
    __syncthreads();
    if (!merge_by_gathering(node, team, scratch)) merge_by_bridges(node, scratch);
    children = (children + kFanIn - 1) / kFanIn;
  }
}

}  // namespace isofold::cuda
