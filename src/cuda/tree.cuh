// The tree over a long row's chunks. The block that finishes a node's last child merges the node and climbs
// on: nobody waits, and since every merge is exact, who arrives last changes no bit.
//
// A node whose chunks hold few vertices gathers them and sweeps them to their hull; in any other, runs of
// children that hold few are gathered, and what remains is merged pairwise by bridges, in place. Either way
// the result is one range of vertices a chunk: nothing moves ('Merge Hulls Without Copying Vertices',
// Section 3.3, Theorem 4.4).
#pragma once

#include <cstdint>

#include "cuda/bridges.cuh"
#include "cuda/gather.cuh"
#include "cuda/neighbours.cuh"
#include "cuda/node.cuh"

namespace isofold::cuda {

template <class E>
struct NodeScratch {
  union {
    GatherScratch<E> gather;
    NeighbourScratch neighbours;
  };
  BridgeScratch bridges;
};

struct SharedNode {
  SpanSums sums;
  int last_arriver;
};

// Sums of the children, where each stands, and the node's own, by the first warp: the others see them in
// `shared` once the block has met.
template <class E>
__device__ void sum_children(const Node<E>& node, std::int64_t number, SharedNode* shared) {
  if (threadIdx.x < 32) {
    const int lane = static_cast<int>(threadIdx.x);
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
    if (lane == 0) {
      shared->sums = all;
      node.plan.sums[node.level][node_id(node.place, node.level, number)] = all;
    }
  }
}

// Whether the block is the last to arrive at a node of `level` that expects as many: if so, it sees all that
// the others have written.
template <class E>
__device__ bool arrives_last(const Plan<E>& plan, const LongRowPlace& place, int level, std::int64_t number,
                             int expected, SharedNode* shared) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();  // for what all threads have written: fences are cumulative
    const int arrived = atomicAdd(plan.arrivals[level] + node_id(place, level, number), 1);
    shared->last_arriver = arrived == expected - 1;
    __threadfence();
  }
  __syncthreads();
  return shared->last_arriver != 0;
}

// Merges a node of level 1 whose chunks are all stored, and climbs from there as long as the block is the
// last child.
template <class E>
__device__ void climb(const Plan<E>& plan, const LongRowPlace& place, std::int64_t number,
                      NodeScratch<E>& scratch, SharedNode* shared, const Team<kBlock>& team) {
  std::int64_t children = place.row.chunks;  // in the row, at the level below
  std::int64_t span = kFanIn;
  for (int level = 1;; ++level) {
    const std::int64_t first = number * span;
    Node<E> node{plan,
                 place,
                 level,
                 first,
                 min(static_cast<long long>(first + span), static_cast<long long>(place.row.chunks)),
                 {}};
    sum_children(node, number, shared);
    if (!merge_by_gathering(node, shared->sums, {node.first_chunk, node.end_chunk}, team, scratch.gather)) {
      const int units = find_units(node, shared->sums, team, scratch.gather, scratch.bridges);
      merge_by_bridges(node, scratch.bridges, units);
    }
    children = (children + kFanIn - 1) / kFanIn;
    if (children == 1) {
      find_neighbours(plan, place, scratch.neighbours);
      return;
    }
    number /= kFanIn;
    span *= kFanIn;
    const auto expected = static_cast<int>(
        min(static_cast<long long>(kFanIn), static_cast<long long>(children - number * kFanIn)));
    if (!arrives_last(plan, place, level + 1, number, expected, shared)) return;
  }
}

}  // namespace isofold::cuda
