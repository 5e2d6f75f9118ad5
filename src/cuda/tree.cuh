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
    // The others see the sums once the block has met.
    if (threadIdx.x < 32) {
      const SpanSums sums = sum_children(node, number);
      if (threadIdx.x == 0) shared->sums = sums;
    }
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
