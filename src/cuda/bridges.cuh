// Merging a node whose chunks hold many vertices: its children pairwise, in place, by the bridges between
// them.
#pragma once

#include <cstdint>

#include "cuda/gather.cuh"
#include "cuda/node.cuh"
#include "geometry/chain_bridge.hpp"

namespace isofold::cuda {

struct BridgeScratch {
  int points[kFanIn];                // of a child; kGatherCapacity: too many to gather
  std::int64_t starts[kFanIn + 1];   // the chunks that units begin with: children, or runs of them
};

// Links two neighbouring runs of chunks of a node by their bridge. One warp.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE void merge_pair(const Node<E>& node, std::int64_t first, std::int64_t middle,
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
  VertexRange* ranges = node.plan.ranges + node.place.row.first_chunk;
  if (lane == 0) {
    const std::int64_t left_chunk = left / kLongChunk;
    VertexRange range = node.range(left_chunk);
    range.last = static_cast<std::uint16_t>(left % kLongChunk);
    if (range.listed()) {
      range.end_entry = static_cast<std::uint16_t>(
          last_listed(node.slot(left_chunk), range.first_entry, range.end_entry - 1, range.last) + 1);
    }
    ranges[left_chunk] = range;
    if (right < end_index) {
      const std::int64_t right_chunk = right / kLongChunk;
      range = node.range(right_chunk);
      range.first = static_cast<std::uint16_t>(right % kLongChunk);
      if (range.listed()) {
        range.first_entry = static_cast<std::uint16_t>(
            last_listed(node.slot(right_chunk), range.first_entry, range.end_entry - 1, range.first));
      }
      ranges[right_chunk] = range;
    }
  }
  // The chunks strictly between the two ends die.
  const std::int64_t from = left / kLongChunk + 1;
  const std::int64_t to = right < end_index ? right / kLongChunk : end;
  for (std::int64_t chunk = from + lane; chunk < to; chunk += 32) ranges[chunk] = {};
  for (std::int64_t base = from / kFanIn * kFanIn + lane * kFanIn; base < to; base += 32 * kFanIn) {
    const LiveWord gone = live_chunks(base, from, to);
    if (gone != 0) atomicAnd(node.live_word(base), ~gone);
  }
}

// Whether the diagram bends up where one run of chunks ends and the next begins, between their vertices next to
// there: the start of the second is one of its vertices.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool joint_bends(const Node<E>& node, std::int64_t middle, std::int64_t end) {
  const SpanErrors<E> errors(node.sums);
  const std::int64_t end_index = end == node.end_chunk ? node.end() : end * kLongChunk;
  const NodeChain<E> chain{node, end_index, errors.total, errors.weight};
  const std::int64_t joint = middle * kLongChunk;
  return chain.is_vertex(chain.point(chain.at_or_before(joint - 1)), chain.point(joint),
                         chain.point(chain.at_or_after(joint + 1)));
}

// How many points every child has.
template <class E>
__device__ void count_points(const Node<E>& node, BridgeScratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));
  for (int child = static_cast<int>(threadIdx.x) / 32; child < kFanIn; child += kBlock / 32) {
    const std::int64_t begin = node.first_chunk + child * span;
    const std::int64_t end = min(static_cast<long long>(begin + span), static_cast<long long>(node.end_chunk));
    int count = 0;
    for (std::int64_t chunk = begin + lane; chunk < end; chunk += 32) {
      count = min(count + node.range(chunk).entries(), kGatherCapacity);
    }
    count = min(warp_sum(count), kGatherCapacity);
    if (lane == 0) scratch.points[child] = count;
  }
  __syncthreads();
}

// Cuts the node's children into units and returns how many they are: runs of children that can be gathered are, and
// become one; any other child is one of its own.
template <class E>
__device__ int find_units(Node<E>& node, const SpanSums& sums, const Team<kBlock>& team, GatherScratch<E>& gathering,
                          BridgeScratch& scratch) {
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));
  const auto children = static_cast<int>((node.end_chunk - node.first_chunk + span - 1) / span);
  count_points(node, scratch);
  int units = 0;
  for (int child = 0; child < children;) {
    int end = child + 1;
    for (int points = scratch.points[child]; end < children; ++end) {
      points += scratch.points[end];
      if (points >= kGatherCapacity) break;
    }
    const std::int64_t first = node.first_chunk + child * span;
    const std::int64_t stop = min(static_cast<long long>(node.first_chunk + end * span),
                                  static_cast<long long>(node.end_chunk));
    if (threadIdx.x == 0) {
      scratch.starts[units] = first;
      scratch.starts[units + 1] = stop;
    }
    ++units;
    if (end > child + 1) merge_by_gathering(node, sums, {first, stop}, team, gathering);
    child = end;
  }
  __syncthreads();
  return units;
}

// Merges the node's units pairwise. Where the diagram bends up at the joint, there is nothing to do.
template <class E>
__device__ void merge_by_bridges(const Node<E>& node, const BridgeScratch& scratch, int units) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t* starts = scratch.starts;
  for (int reach = 1; reach < units; reach *= 2) {
    for (int first = 2 * reach * warp; first + reach < units; first += 2 * reach * (kBlock / 32)) {
      const std::int64_t middle = starts[first + reach];
      if (joint_bends(node, middle, starts[min(first + 2 * reach, units)])) continue;
      merge_pair(node, starts[first], middle, starts[min(first + 2 * reach, units)]);
    }
    __threadfence();
    __syncthreads();
  }
}

}  // namespace isofold::cuda
