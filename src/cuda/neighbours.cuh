// Where the nearest live chunks stand, once a row's root has decided which live.
#pragma once

#include <cstdint>

#include "cuda/node.cuh"

namespace isofold::cuda {

struct NeighbourScratch {
  std::int32_t firsts[kBlock];
  std::int32_t lasts[kBlock];
};

// For every node of level 1 of a merged row the nearest live chunks outside it. The whole block.
template <class E>
__device__ void find_neighbours(const Plan<E>& plan, const LongRowPlace& place, NeighbourScratch& scratch) {
  auto& firsts = scratch.firsts;
  auto& lasts = scratch.lasts;
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t groups = (place.row.chunks + kFanIn - 1) / kFanIn;
  const std::int64_t share = (groups + kBlock - 1) / kBlock;
  const std::int64_t begin = min(static_cast<long long>(thread * share), static_cast<long long>(groups));
  const std::int64_t end = min(static_cast<long long>(begin + share), static_cast<long long>(groups));
  const std::uint32_t* live = plan.live + node_id(place, 1, 0);
  std::int32_t first = -1;
  std::int32_t last = -1;
  for (std::int64_t g = begin; g < end; ++g) {
    const std::uint32_t word = __ldcg(live + g);
    if (word == 0) continue;
    if (first < 0) first = static_cast<std::int32_t>(g * 32 + __ffs(static_cast<int>(word)) - 1);
    last = static_cast<std::int32_t>(g * 32 + 31 - __clz(static_cast<int>(word)));
  }
  firsts[thread] = first;
  lasts[thread] = last;
  __syncthreads();
  std::int32_t before = -1;
  for (int t = thread - 1; t >= 0 && before < 0; --t) before = lasts[t];
  std::int32_t after = -1;
  for (int t = thread + 1; t < kBlock && after < 0; ++t) after = firsts[t];
  if (after < 0) after = static_cast<std::int32_t>(place.row.chunks);
  const std::int64_t node = node_id(place, 1, 0);
  for (std::int64_t g = begin; g < end; ++g) {
    plan.live_before[node + g] = before;
    const std::uint32_t word = __ldcg(live + g);
    if (word != 0) before = static_cast<std::int32_t>(g * 32 + 31 - __clz(static_cast<int>(word)));
  }
  for (std::int64_t g = end - 1; g >= begin; --g) {
    plan.live_after[node + g] = after;
    const std::uint32_t word = __ldcg(live + g);
    if (word != 0) after = static_cast<std::int32_t>(g * 32 + __ffs(static_cast<int>(word)) - 1);
  }
}

}  // namespace isofold::cuda
