// Merging a node whose chunks hold few vertices: they are gathered into shared memory, cut where children
// join and swept to their hull. What is left is written back as a range a chunk.
#pragma once

#include <cstdint>

#include "cuda/hull.cuh"
#include "cuda/joints.cuh"
#include "cuda/node.cuh"

namespace isofold::cuda {

inline constexpr int kGatherCapacity = 2048;
inline constexpr int kLongLists = 12;  // points a child above which its joints are cut before any sweep

template <class E>
struct GatherScratch {
  PointList<E::kWeighted, kGatherCapacity> list;
  int counts[kGatherCapacity / 32];
  JointScratch joints;
};

// Neighbouring children of a node, all of them or a run: chunks [first, end) of its row.
struct ChildRun {
  std::int64_t first;
  std::int64_t end;
};

// The live chunks of a thread's share of a run.
template <class E>
struct LiveShare {
  static constexpr int kHeld =
      8;  // ranges that are fetched at a time, so that their ways from memory overlap
  const Node<E>& node;
  std::int64_t size;  // chunks a thread: a power of two, so that no thread has chunks of two children
  std::int64_t begin;
  std::int64_t end;

  __device__ LiveShare(const Node<E>& of_node, const ChildRun& run) : node(of_node), size(1) {
    while (size * kBlock < run.end - run.first) size *= 2;
    const auto at = [&](std::int64_t share) {
      return min(static_cast<long long>(run.first + share * size), static_cast<long long>(run.end));
    };
    begin = at(threadIdx.x);
    end = at(threadIdx.x + 1);
  }

  // Calls use(chunk, range) for each, in order.
  template <class Use>
  __device__ void for_each(Use use) const {
    for (std::int64_t from = begin; from < end;) {
      const std::int64_t base = from / kFanIn * kFanIn;
      const std::int64_t stop = min(static_cast<long long>(base + kFanIn), static_cast<long long>(end));
      LiveWord word = __ldcg(node.live_word(from));
      word &= live_chunks(base, from, stop);
#pragma unroll 1
      while (word != 0) {
        std::int64_t chunks[kHeld];
        VertexRange ranges[kHeld];
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
          chunks[i] = base + lowest_live(word);
          ranges[i] = word != 0 ? node.range(chunks[i]) : VertexRange{};
          word &= word - 1;
        }
#pragma unroll
        for (int i = 0; i < kHeld; ++i) {
          if (ranges[i].entries() > 0) use(chunks[i], ranges[i]);
        }
      }
      from = stop;
    }
  }
};

// Lists a run's live vertices and then its end, and where its children's begin in that list; returns how many
// they are, or 0 where they are too many or not all listed. The node's sums are known once the block has met.
template <class E>
__device__ int gather(Node<E>& node, const SpanSums& sums, const ChildRun& run, const Team<kBlock>& team,
                      GatherScratch<E>& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const LiveShare<E> share(node, run);
  int count = 0;
  share.for_each(
      [&](std::int64_t, const VertexRange& range) { count = min(count + range.entries(), kGatherCapacity); });
  const auto places = team.scan(count);
  node.sums = sums;
  if (places.all >= kGatherCapacity) return 0;

  auto& list = scratch.list;
  const std::int64_t child = thread * share.size >> (kFanBits * (node.level - 1));
  if (child << (kFanBits * (node.level - 1)) == thread * share.size && child < kFanIn) {
    scratch.joints.bounds[child] = places.before;
  }
  // Each entry's place gets its name; then all threads fetch what is named.
  int place = places.before;
  if (count > 0) {
    share.for_each([&](std::int64_t chunk, const VertexRange& range) {
#pragma unroll 1
      for (int entry = range.first_entry; entry < range.end_entry; ++entry)
        list.index[place++] = chunk << 16 | entry;
    });
  }
  __syncthreads();
  // All that a thread fetches in a turn is on its way before any of it is kept.
  constexpr int kAtOnce = 4;
#pragma unroll 1
  for (int first = thread; first < places.all; first += kAtOnce * kBlock) {
    std::int64_t names[kAtOnce];
    std::uint32_t positions[kAtOnce];
    DoubleDouble totals[kAtOnce];
    DoubleDouble weights[kAtOnce];
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const int place = first + j * kBlock;
      names[j] = list.index[place < places.all ? place : first];  // others' places may be taken already
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const auto entry = static_cast<int>(names[j] & 0xffff);
      const Slot<E>& slot = node.slot(names[j] >> 16);
      positions[j] = __ldcg(slot.places + entry);
      totals[j] = {__ldcg(slot.total_high + entry), __ldcg(slot.total_low + entry)};
      if constexpr (E::kWeighted) {
        weights[j] = {__ldcg(slot.weight_high + entry), __ldcg(slot.weight_low + entry)};
      }
    }
#pragma unroll 1
    for (int level = 0; level < node.level; ++level) {
      Base steps[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) steps[j] = node.base(level, names[j] >> 16);
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        totals[j] = steps[j].total + totals[j];
        if constexpr (E::kWeighted) weights[j] = steps[j].weight + weights[j];
      }
    }
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      if (first + j * kBlock >= places.all) break;
      list.set(first + j * kBlock, (names[j] >> 16) * kLongChunk + positions[j], totals[j], weights[j],
               static_cast<int>(names[j] & 0xffff));
    }
  }
  if (thread == 0) {
    const bool last = run.end == node.end_chunk;
    const Base base = last ? Base{node.sums.total, node.sums.weight} : node.base(run.end);
    list.set(places.all, last ? node.end() : run.end * kLongChunk, base.total, base.weight, 0);
  }
  __syncthreads();
  return places.all + 1;
}

// Writes what is left of a run, the first `count` listed points, as a range a chunk.
template <class E>
__device__ void keep_ranges(const Node<E>& node, const ChildRun& run, const GatherScratch<E>& scratch,
                            int count) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto& list = scratch.list;
  VertexRange* ranges = node.plan.ranges + node.place.row.first_chunk;
  for (std::int64_t base = run.first / kFanIn * kFanIn + thread * kFanIn; base < run.end;
       base += kBlock * kFanIn) {
    const LiveWord gone = live_chunks(base, run.first, run.end);
    *node.live_word(base) = gone == ~LiveWord{0} ? 0 : __ldcg(node.live_word(base)) & ~gone;
  }
  __syncthreads();
  const auto index = [&](int i) { return list.index[list.order[i]]; };
  for (int i = thread; i < count; i += kBlock) {
    const std::int64_t chunk = index(i) / kLongChunk;
    if (i > 0 && index(i - 1) / kLongChunk == chunk) continue;
    int last = i;
    while (last + 1 < count && index(last + 1) / kLongChunk == chunk) ++last;
    ranges[chunk] = {list.ordinal[list.order[i]],
                     static_cast<std::uint16_t>(list.ordinal[list.order[last]] + 1),
                     static_cast<std::uint16_t>(index(i) % kLongChunk),
                     static_cast<std::uint16_t>(index(last) % kLongChunk)};
    atomicOr(node.live_word(chunk), 1ULL << (chunk % kFanIn));
  }
}

// Whether a point of a node's gathered list is a vertex beside two others.
template <class E, class List>
struct ListedTurns {
  const List& list;
  E row;
  SpanErrors<E> errors;
  SpanFacts span;

  __device__ ListedTurns(const Node<E>& node, const List& of_list)
      : list(of_list),
        row(node.plan.elements.from(node.place.row.begin)),
        errors(node.sums),
        span{node.sums.magnitude, node.sums.weight_magnitude, errors.total, errors.weight} {}

  __device__ bool operator()(int a, int b, int d) const {
    const Turn quick = list.quick_turn(a, b, d, span);
    if (quick != Turn::undecided) return quick == Turn::up;
    return certified_vertex(row, list.point(a, errors.total, errors.weight),
                            list.point(b, errors.total, errors.weight),
                            list.point(d, errors.total, errors.weight));
  }
};

// The hull of a run of a node's children from a gathered list of their vertices, if they are few. Returns
// whether they were.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool merge_by_gathering(Node<E>& node, const SpanSums& sums, const ChildRun& run,
                                                   const Team<kBlock>& team, GatherScratch<E>& scratch) {
  const int count = gather(node, sums, run, team, scratch);
  if (count == 0) return false;
  auto& list = scratch.list;
  list.number(count);
  const ListedTurns<E, decltype(scratch.list)> is_vertex(node, list);
  // Each child's hull is convex already; the last one's goes on to the end.
  const std::int64_t child = std::int64_t{1} << (kFanBits * (node.level - 1));
  const auto children = static_cast<int>((run.end - run.first + child - 1) / child);
  const bool cut = count > kLongLists * children;
  int left = count;
  if (cut) {
    if (threadIdx.x == 0) scratch.joints.bounds[children] = count;
    left = cut_joints<kGatherCapacity>(list.order, children, scratch.joints, scratch.counts, is_vertex);
  }
  left = sweep_block<kGatherCapacity>(list.order, left, kFewPoints, scratch.counts, is_vertex, !cut);
  keep_ranges(node, run, scratch, left - 1);
  return true;
}

}  // namespace isofold::cuda
