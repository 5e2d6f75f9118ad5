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
  if (lane == 0) {
    const std::int64_t left_chunk = left / kLongChunk;
    ChunkRecord* record = node.plan.chunks + node.place.row.first_chunk + left_chunk;
    record->last = static_cast<int>(left % kLongChunk);
    ListedRange range = node.listed(left_chunk);
    if (range.end != kMasked) {
      range.end = static_cast<std::uint16_t>(
          last_listed(node.slot(left_chunk), range.first, range.end - 1, record->last) + 1);
      node.plan.listed[node.place.row.first_chunk + left_chunk] = range;
    }
    if (right < end_index) {
      const std::int64_t right_chunk = right / kLongChunk;
      ChunkRecord* after = node.plan.chunks + node.place.row.first_chunk + right_chunk;
      after->first = static_cast<int>(right % kLongChunk);
      range = node.listed(right_chunk);
      if (range.end != kMasked) {
        range.first = static_cast<std::uint16_t>(
            last_listed(node.slot(right_chunk), range.first, range.end - 1, after->first));
        node.plan.listed[node.place.row.first_chunk + right_chunk] = range;
      }
    }
  }
  // The chunks strictly between the two ends die.
  const std::int64_t from = left / kLongChunk + 1;
  const std::int64_t to = right < end_index ? right / kLongChunk : end;
  for (std::int64_t chunk = from + lane; chunk < to; chunk += 32) {
    node.plan.listed[node.place.row.first_chunk + chunk] = {0, 0};
  }
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
ISOFOLD_DEVICE_OUT_OF_LINE bool joint_bends(const Node<E>& node, std::int64_t middle) {
  const SpanErrors<E> errors(node.sums);
  const NodeChain<E> chain{node, node.end(), errors.total, errors.weight};
  const std::int64_t joint = middle * kLongChunk;
  return chain.is_vertex(chain.point(chain.at_or_before(joint - 1)), chain.point(joint),
                         chain.point(chain.at_or_after(joint + 1)));
}

// Pairwise, in five rounds. Joints that bend up from the start need no bridge as long as nothing has been
// cut.
template <class E>
__device__ void merge_by_bridges(const Node<E>& node, BridgeScratch& scratch) {
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

}  // namespace isofold::cuda
