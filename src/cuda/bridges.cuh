// Merging a node whose chunks hold many vertices: its children pairwise, in place, by the bridges between
// them.
#pragma once

#include <cstdint>

#include "cuda/node.cuh"
#include "geometry/chain_bridge.hpp"

namespace isofold::cuda {

struct BridgeScratch {
  int cut;  // some merge has removed a vertex
  bool bends[kFanIn];
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
  for (std::int64_t group = from / kFanIn + lane; group * kFanIn < to; group += 32) {
    LiveWord gone = ~LiveWord{0};
    if (group * kFanIn < from) gone &= ~LiveWord{0} << (from - group * kFanIn);
    if (group * kFanIn + kFanIn > to) gone &= ~(~LiveWord{0} << (to - group * kFanIn));
    if (gone != 0) atomicAnd(node.live_word(group * kFanIn), ~gone);
  }
}

// Whether the diagram bends up where one child ends and the next begins, between their vertices next to
// there.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool joint_bends(const Node<E>& node, std::int64_t middle) {
  const SpanErrors<E> errors(node.sums);
  const NodeChain<E> chain{node, node.end(), errors.total, errors.weight};
  const std::int64_t joint = middle * kLongChunk;
  return chain.is_vertex(chain.point(chain.at_or_before(joint - 1)), chain.point(joint),
                         chain.point(chain.at_or_after(joint + 1)));
}

// Pairwise, in six rounds. Joints that bend up from the start need no bridge as long as nothing has been
// cut.
template <class E>
__device__ void merge_by_bridges(const Node<E>& node, BridgeScratch& scratch) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));
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

}  // namespace isofold::cuda
