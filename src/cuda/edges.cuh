// Between the tree and the fit: the value of every edge between live chunks.
#pragma once

#include <cstdint>

#include "cuda/node.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

inline constexpr int kEdgesABlock = 4;

// The value of the edge that leaves each live chunk. A warp a chunk.
template <class E>
__global__ void __launch_bounds__(32 * kEdgesABlock) value_edges(const Plan<E> plan) {
  begin_kernel();
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * kEdgesABlock + threadIdx.x / 32;
  if (id >= plan.chunks_bound) return;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t number = id - place.row.first_chunk;
  const std::int64_t group = node_id(place, 1, number / kFanIn);
  const auto bit = static_cast<int>(number % kFanIn);
  const LiveWord word = plan.live[group];
  if (!is_live(word, bit)) return;
  const LiveWord above = live_above(word, bit);
  const std::int64_t next = above != 0 ? number - bit + lowest_live(above) : plan.live_after[group];
  const std::int64_t a = number * kLongChunk + plan.ranges[id].last;
  const std::int64_t b = next < place.row.chunks
                             ? next * kLongChunk + plan.ranges[place.row.first_chunk + next].first
                             : place.row.length;
  // In the lowest node that holds both chunks, or the root.
  const std::int64_t other = next < place.row.chunks ? next : place.row.chunks - 1;
  int level = 1;
  while ((number >> (kFanBits * level)) != (other >> (kFanBits * level))) ++level;
  const std::int64_t index = number >> (kFanBits * level);
  const std::int64_t first = index << (kFanBits * level);
  const std::int64_t last = (index + 1) << (kFanBits * level);
  const Node<E> node{plan,
                     place,
                     level,
                     first,
                     min(static_cast<long long>(last), static_cast<long long>(place.row.chunks)),
                     plan.sums[level][node_id(place, level, index)]};
  const SpanErrors<E> errors(node.sums);
  const NodeChain<E, 32> chain{node, node.end(), errors.total, errors.weight};
  const Point from = chain.place(a);
  const Point to = chain.place(b);
  CertifiedSum weight{{static_cast<double>(b - a), 0.0}, 0.0};
  if constexpr (E::kWeighted) {
    weight = {to.weight.value - from.weight.value, from.weight.error + to.weight.error};
  }
  if (threadIdx.x % 32 != 0) return;
  plan.chunks[id].outgoing = certified_mean(
      plan.elements.from(place.row.begin), a, b,
      {to.total.value - from.total.value, from.total.error + to.total.error}, weight, plan.output.format);
}

}  // namespace isofold::cuda
