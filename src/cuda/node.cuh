// A node of a long row's tree as the merges see it: its chunks' records, where they stand, its live vertices.
#pragma once

#include <cstdint>
#include <limits>

#include "cuda/chunk.cuh"
#include "cuda/plan.cuh"

namespace isofold::cuda {

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
  __device__ VertexRange range(std::int64_t chunk) const {
    return load_fresh(plan.ranges + place.row.first_chunk + chunk);
  }
  __device__ const Slot<E>& slot(std::int64_t chunk) const {
    return plan.slots[place.row.first_chunk + chunk];
  }
  __device__ LiveWord* live_word(std::int64_t chunk) const {
    return plan.live + node_id(place, 1, chunk / kFanIn);
  }

  __device__ bool live(std::int64_t chunk) const {
    return is_live(__ldcg(live_word(chunk)), static_cast<int>(chunk % kFanIn));
  }

  // The sums before a chunk's ancestor of level `l` in that one's parent.
  __device__ Base base(int l, std::int64_t chunk) const {
    const Base* step = plan.bases[l] + node_id(place, l, chunk >> (kFanBits * l));
    Base base{load_fresh(&step->total), {}};
    if constexpr (E::kWeighted) base.weight = load_fresh(&step->weight);
    return base;
  }
  // The sums from the node's start to a chunk's.
  __device__ Base base(std::int64_t chunk) const {
    Base sum{};
    for (int l = level - 1; l >= 0; --l) {
      const Base step = base(l, chunk);
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

// A point of a node's diagram; its sums from the node's start are found when first asked for.
struct NodePoint {
  std::int64_t index;
  mutable bool known = false;
  mutable Point sums{};
};

// A node's live vertices, asked by a whole warp in step (32 lanes) or by every lane alone (1). Indices are
// the row's. `end` bounds the right chain. A turn between near points is judged by the elements between them,
// which are few and whose sums have small errors; any other by the sums from the node's start.
template <class E, int Lanes>
struct NodeChain {
  static_assert(Lanes == 1 || Lanes == 32);
  const Node<E>& node;
  std::int64_t end;
  double error;
  double weight_error;

  static constexpr int kNear = 2 * (Lanes == 1 ? 16 : 32);  // elements

  __device__ const isofold::Point& sums(const NodePoint& point) const {
    if (!point.known) {
      point.sums = place_apart(point.index);
      point.known = true;
    }
    return point.sums;
  }

  ISOFOLD_DEVICE_OUT_OF_LINE bool is_vertex(const NodePoint& a, const NodePoint& b,
                                            const NodePoint& d) const {
    const E row = node.plan.elements.from(node.place.row.begin);
    if (b.index - a.index <= kNear && d.index - b.index <= kNear) {
      const isofold::Point at_a{a.index, {}, {}};
      const isofold::Point at_b = beyond(at_a, b.index);
      return certified_vertex(row, at_a, at_b, beyond(at_b, d.index));
    }
    return certified_vertex(row, sums(a), sums(b), sums(d));
  }

  // The point with the sums from the node's start.
  __device__ isofold::Point place(std::int64_t index) const {
    isofold::Point p{index, {{static_cast<double>(index - node.begin()), 0.0}, weight_error}, {{}, error}};
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
    p.total.value =
        p.total.value + DoubleDouble{__ldcg(slot.total_high + entry), __ldcg(slot.total_low + entry)};
    if constexpr (E::kWeighted) {
      p.weight.value =
          p.weight.value + DoubleDouble{__ldcg(slot.weight_high + entry), __ldcg(slot.weight_low + entry)};
    }
    if (record.count == 0) {
      const Run run = sum_run(chunk * kLongChunk + entry * kTile, index);
      p.total.value = p.total.value + run.total;
      if constexpr (E::kWeighted) p.weight.value = p.weight.value + run.weight;
    }
    return p;
  }

  ISOFOLD_DEVICE_OUT_OF_LINE std::int64_t at_or_before(std::int64_t index) const {
    if (index >= end) return end;
    std::int64_t chunk = index / kLongChunk;
    const int position = static_cast<int>(index % kLongChunk);
    LiveWord word = __ldcg(node.live_word(chunk));
    if (is_live(word, static_cast<int>(chunk % kFanIn))) {
      const VertexRange range = node.range(chunk);
      if (range.first <= position) return chunk * kLongChunk + inside_before(chunk, range, position);
    }
    word = live_below(word, static_cast<int>(chunk % kFanIn));
    std::int64_t group = chunk / kFanIn;
    while (word == 0) word = __ldcg(node.live_word(--group * kFanIn));
    chunk = group * kFanIn + highest_live(word);
    return chunk * kLongChunk + node.range(chunk).last;
  }

  ISOFOLD_DEVICE_OUT_OF_LINE std::int64_t at_or_after(std::int64_t index) const {
    if (index >= end) return end;
    std::int64_t chunk = index / kLongChunk;
    const int position = static_cast<int>(index % kLongChunk);
    LiveWord word = __ldcg(node.live_word(chunk));
    if (is_live(word, static_cast<int>(chunk % kFanIn))) {
      const VertexRange range = node.range(chunk);
      if (range.last >= position) {
        const std::int64_t found = chunk * kLongChunk + inside_after(chunk, range, position);
        return found < end ? found : end;
      }
    }
    word = live_above(word, static_cast<int>(chunk % kFanIn));
    std::int64_t group = chunk / kFanIn;
    const std::int64_t last_group = (node.end_chunk - 1) / kFanIn;
    while (word == 0) {
      if (++group > last_group) return end;
      word = __ldcg(node.live_word(group * kFanIn));
    }
    chunk = group * kFanIn + lowest_live(word);
    if (chunk * kLongChunk >= end) return end;
    return chunk * kLongChunk + node.range(chunk).first;
  }

 private:
  struct Run {
    DoubleDouble total;
    DoubleDouble weight;
    double magnitude;
  };

  ISOFOLD_DEVICE_OUT_OF_LINE isofold::Point place_apart(std::int64_t index) const { return place(index); }

  // Of the elements [from, to), few.
  __device__ Run sum_run(std::int64_t from, std::int64_t to) const {
    const E row = node.plan.elements.from(node.place.row.begin);
    Run run{};
    if constexpr (Lanes == 1 && kPlainTiles<E>) {
      double total = 0;
#pragma unroll 4
      for (std::int64_t i = from; i < to; ++i) {
        const double value = row.value(i);
        total += value;
        run.magnitude += fabs(value);
      }
      run.total.high = total;
      if (exact_as_double(run.magnitude * (1 + 0x1p-40), node.sums.unit)) return run;
      run = {};
    }
    for (std::int64_t i = from + (Lanes == 1 ? 0 : threadIdx.x % 32); i < to; i += Lanes) {
      add_element<E>(row, i, run.total, run.weight);
      run.magnitude += fabs(row.weight(i) * row.value(i));
    }
    constexpr unsigned kAll = 0xffffffffU;
#pragma unroll 1
    for (int step = 1; step < Lanes; step *= 2) {
      run.total = run.total + DoubleDouble{__shfl_xor_sync(kAll, run.total.high, step),
                                           __shfl_xor_sync(kAll, run.total.low, step)};
      if constexpr (E::kWeighted) {
        run.weight = run.weight + DoubleDouble{__shfl_xor_sync(kAll, run.weight.high, step),
                                               __shfl_xor_sync(kAll, run.weight.low, step)};
      }
      run.magnitude += __shfl_xor_sync(kAll, run.magnitude, step);
    }
    return run;
  }

  // The near point at `index`, by sums from where those of `from` start. Sums that overflow are not known.
  __device__ isofold::Point beyond(const isofold::Point& from, std::int64_t index) const {
    const Run run = sum_run(from.index, index);
    const auto known = [](const DoubleDouble& sum) {
      return fabs(sum.high) <= std::numeric_limits<double>::max() ? 0.0 : INFINITY;
    };
    isofold::Point p = from;
    p.index = index;
    p.total.value = p.total.value + run.total;
    p.total.error +=
        pair_error(run.magnitude * (1 + 0x1p-40), node.sums.unit, E::kWeighted) + known(p.total.value);
    if constexpr (E::kWeighted) {
      p.weight.value = p.weight.value + run.weight;
      p.weight.error +=
          pair_error(run.weight.high * (1 + 0x1p-40), node.sums.weight_unit, false) + known(p.weight.value);
    } else {
      p.weight.value.high += static_cast<double>(index - from.index);
    }
    return p;
  }

  __device__ int inside_before(std::int64_t chunk, const VertexRange& range, int position) const {
    if (position >= range.last) return range.last;
    const Slot<E>& slot = node.slot(chunk);
    if (range.listed()) {
      const int entry = last_listed(slot, range.first_entry, range.end_entry - 1, position);
      return static_cast<int>(__ldcg(slot.places + entry));
    }
    int word = position / kTile;
    std::uint32_t bits = __ldcg(slot.places + word) & (~0U >> (kTile - 1 - position % kTile));
    if (bits == 0) {
      int some = word / 32;
      std::uint32_t occupied = __ldcg(slot.occupied + some) & ((1U << (word % 32)) - 1U);
      while (occupied == 0) occupied = __ldcg(slot.occupied + --some);
      word = some * 32 + 31 - __clz(static_cast<int>(occupied));
      bits = __ldcg(slot.places + word);
    }
    return word * kTile + 31 - __clz(static_cast<int>(bits));
  }
  __device__ int inside_after(std::int64_t chunk, const VertexRange& range, int position) const {
    if (position <= range.first) return range.first;
    const Slot<E>& slot = node.slot(chunk);
    if (range.listed()) {
      const int entry = last_listed(slot, range.first_entry, range.end_entry - 1, position - 1) + 1;
      return static_cast<int>(__ldcg(slot.places + entry));
    }
    int word = position / kTile;
    std::uint32_t bits = __ldcg(slot.places + word) & (~0U << (position % kTile));
    if (bits == 0) {
      int some = word / 32;
      std::uint32_t occupied = __ldcg(slot.occupied + some) & ~((2U << (word % 32)) - 1U);
      while (occupied == 0) occupied = __ldcg(slot.occupied + ++some);
      word = some * 32 + __ffs(static_cast<int>(occupied)) - 1;
      bits = __ldcg(slot.places + word);
    }
    return word * kTile + __ffs(static_cast<int>(bits)) - 1;
  }
};

// Sums of the children, where each stands, and the node's own, which is returned. One warp.
template <class E>
__device__ SpanSums sum_children(const Node<E>& node, std::int64_t number) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  constexpr int kALane = kFanIn / 32;
  const std::int64_t first = number * kFanIn + lane * kALane;
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));
  const auto present = [&](int i) { return (first + i) * span < node.end_chunk; };
  const std::int64_t id = node_id(node.place, node.level - 1, first);
  SpanSums sums[kALane];
#pragma unroll
  for (int i = 0; i < kALane; ++i) {
    sums[i] = {{}, {}, 0.0, 0.0, UnitTracker::kNone, UnitTracker::kNone};
    if (present(i)) sums[i] = load_fresh(node.plan.sums[node.level - 1] + id + i);
  }
  SpanSums mine = sums[0];
#pragma unroll
  for (int i = 1; i < kALane; ++i) mine = mine + sums[i];
  const Team<32> warp{nullptr};
  const auto totals = warp.scan(mine.total);
  Base base{totals.before, {}};
  SpanSums all{totals.all, {}, 0.0, 0.0, UnitTracker::kNone, UnitTracker::kNone};
  all.magnitude = warp.reduce_sum(mine.magnitude) * (1 + 0x1p-40);
  all.unit = warp_min(mine.unit);
  if constexpr (E::kWeighted) {
    const auto weights = warp.scan(mine.weight);
    base.weight = weights.before;
    all.weight = weights.all;
    all.weight_magnitude = warp.reduce_sum(mine.weight_magnitude) * (1 + 0x1p-40);
    all.weight_unit = warp_min(mine.weight_unit);
  }
#pragma unroll
  for (int i = 0; i < kALane; ++i) {
    if (present(i)) node.plan.bases[node.level - 1][id + i] = base;
    base.total = base.total + sums[i].total;
    if constexpr (E::kWeighted) base.weight = base.weight + sums[i].weight;
  }
  if (lane == 0) node.plan.sums[node.level][node_id(node.place, node.level, number)] = all;
  return all;
}

}  // namespace isofold::cuda
