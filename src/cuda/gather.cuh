// Merging a node whose chunks hold few vertices: they are gathered into shared memory, cut where children join
// and swept to their hull. What is left is written back as a range a chunk.
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

// Lists the node's live vertices and then its end, and where its children's begin in that list; returns how many
// they are, or 0 where they are too many or not all listed. The node's sums are known once the block has met.
template <class E>
__device__ int gather(Node<E>& node, const SpanSums& sums, const Team<kBlock>& team, GatherScratch<E>& scratch) {
  constexpr int kHeld = 8;
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t chunks = node.end_chunk - node.first_chunk;
  // A power of two chunks a thread: no thread has chunks of two children.
  std::int64_t share = 1;
  while (share * kBlock < chunks) share *= 2;
  const std::int64_t begin = min(static_cast<long long>(thread * share), static_cast<long long>(chunks));
  const std::int64_t end = min(static_cast<long long>(begin + share), static_cast<long long>(chunks));
  const VertexRange* ranges = node.plan.ranges + node.place.row.first_chunk + node.first_chunk;
  VertexRange held[kHeld];
  int count = 0;
  // Several at a time, so that their ways from memory overlap.
  const auto fetch = [&](std::int64_t from) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) held[i] = from + i < end ? load_fresh(ranges + from + i) : VertexRange{};
  };
  fetch(begin);
  for (std::int64_t from = begin;;) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) count = min(count + held[i].entries(), kGatherCapacity);
    from += kHeld;
    if (from >= end) break;
    fetch(from);
  }
  const auto places = team.scan(count);
  node.sums = sums;
  if (places.all >= kGatherCapacity) return 0;

  auto& list = scratch.list;
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));  // chunks a child
  const std::int64_t mine = thread * share;
  if (mine % span == 0 && mine / span < kFanIn) {
    scratch.joints.bounds[mine / span] = places.before;
  }
  int place = places.before;
  // Each entry's place gets its name; then all threads fetch what is named.
  if (end - begin > kHeld) fetch(begin);
  for (std::int64_t from = begin;;) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      for (int entry = held[i].first_entry; entry < held[i].end_entry; ++entry) {
        list.index[place++] = (from + i) << 16 | entry;
      }
    }
    from += kHeld;
    if (from >= end) break;
    fetch(from);
  }
  __syncthreads();
#pragma unroll 2
  for (int i = thread; i < places.all; i += kBlock) {
    const std::int64_t chunk = node.first_chunk + (list.index[i] >> 16);
    const int entry = static_cast<int>(list.index[i] & 0xffff);
    const Slot<E>& slot = node.slot(chunk);
    const Base base = node.base(chunk);
    const DoubleDouble total{__ldcg(slot.total_high + entry), __ldcg(slot.total_low + entry)};
    DoubleDouble weight{};
    if constexpr (E::kWeighted) {
      weight = base.weight + DoubleDouble{__ldcg(slot.weight_high + entry), __ldcg(slot.weight_low + entry)};
    }
    list.set(i, chunk * kLongChunk + static_cast<int>(__ldcg(slot.places + entry)), base.total + total, weight,
             entry);
  }
  if (thread == 0) list.set(places.all, node.end(), node.sums.total, node.sums.weight, 0);
  __syncthreads();
  return places.all + 1;
}

// Writes what is left of the first `count` listed points as a range a chunk.
template <class E>
__device__ void keep_ranges(const Node<E>& node, const GatherScratch<E>& scratch, int count) {
  const int thread = static_cast<int>(threadIdx.x);
  const auto& list = scratch.list;
  VertexRange* ranges = node.plan.ranges + node.place.row.first_chunk;
  for (std::int64_t chunk = node.first_chunk + thread; chunk < node.end_chunk; chunk += kBlock) {
    ranges[chunk] = {};
    if (chunk % kFanIn == 0) *node.live_word(chunk) = 0;
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

// The node's hull from a gathered list of its vertices, if they are few. Returns whether they were.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool merge_by_gathering(Node<E>& node, const SpanSums& sums,
                                                   const Team<kBlock>& team, GatherScratch<E>& scratch) {
  const int count = gather(node, sums, team, scratch);
  if (count == 0) return false;
  auto& list = scratch.list;
  const SpanErrors<E> errors(node.sums);
  const E row = node.plan.elements.from(node.place.row.begin);
  const SpanFacts span{node.sums.magnitude, node.sums.weight_magnitude, errors.total, errors.weight};
  list.number(count);
  const auto is_vertex = [&](int a, int b, int d) {
    const Turn quick = list.quick_turn(a, b, d, span);
    if (quick != Turn::undecided) return quick == Turn::up;
    return certified_vertex(row, list.point(a, errors.total, errors.weight),
                            list.point(b, errors.total, errors.weight),
                            list.point(d, errors.total, errors.weight));
  };
  // Each child's hull is convex already; the last one's goes on to the node's end.
  const std::int64_t child = std::int64_t{1} << (kFanBits * (node.level - 1));
  const auto children = static_cast<int>((node.end_chunk - node.first_chunk + child - 1) / child);
  const bool cut = count > kLongLists * children;
  int left = count;
  if (cut) {
    if (threadIdx.x == 0) scratch.joints.bounds[children] = count;
    left = cut_joints<kGatherCapacity>(list.order, children, scratch.joints, scratch.counts, is_vertex);
  }
  left = sweep_block<kGatherCapacity>(list.order, left, kFewPoints, scratch.counts, is_vertex, !cut);
  keep_ranges(node, scratch, left - 1);
  return true;
}

}  // namespace isofold::cuda
