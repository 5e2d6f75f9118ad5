// Where the nearest live chunks stand, once a row's root has decided which live.
#pragma once

#include <cstdint>

#include "cuda/node.cuh"

namespace isofold::cuda {

struct NeighbourScratch {
  std::int32_t firsts[kBlock / 32];  // of a warp's threads; -1: none
  std::int32_t lasts[kBlock / 32];
};

// A merged row of a single node of level 1 has no live chunks outside it. A thread.
template <class E>
__device__ void note_sole_group(const Plan<E>& plan, const LongRowPlace& place) {
  plan.live_before[node_id(place, 1, 0)] = -1;
  plan.live_after[node_id(place, 1, 0)] = static_cast<std::int32_t>(place.row.chunks);
}

// For every node of level 1 of a merged row the nearest live chunks outside it. The whole block.
template <class E>
__device__ void find_neighbours(const Plan<E>& plan, const LongRowPlace& place, NeighbourScratch& scratch) {
  constexpr unsigned kAll = 0xffffffffU;
  const int thread = static_cast<int>(threadIdx.x);
  __syncthreads();
  const int lane = thread % 32;
  const int warp = thread / 32;
  const std::int64_t groups = (place.row.chunks + kFanIn - 1) / kFanIn;
  if (groups == 1) {
    if (threadIdx.x == 0) note_sole_group(plan, place);
    return;
  }
  const std::int64_t share = (groups + kBlock - 1) / kBlock;
  const std::int64_t begin = min(static_cast<long long>(thread * share), static_cast<long long>(groups));
  const std::int64_t end = min(static_cast<long long>(begin + share), static_cast<long long>(groups));
  const std::int64_t node = node_id(place, 1, 0);
  const LiveWord* live = plan.live + node;
  const auto lowest = [](std::int64_t g, LiveWord word) {
    return static_cast<std::int32_t>(g * kFanIn + lowest_live(word));
  };
  const auto highest = [](std::int64_t g, LiveWord word) {
    return static_cast<std::int32_t>(g * kFanIn + highest_live(word));
  };
  std::int32_t first = -1;
  std::int32_t last = -1;
  for (std::int64_t g = begin; g < end; ++g) {
    const LiveWord word = __ldcg(live + g);
    if (word == 0) continue;
    if (first < 0) first = lowest(g, word);
    last = highest(g, word);
  }
  // Of the threads before and after: in the warp, else in other warps, else the row's ends.
  const unsigned some = __ballot_sync(kAll, last >= 0);
  const int left = 31 - __clz(static_cast<int>(some & ((1U << lane) - 1U)));
  const unsigned above = lane == 31 ? 0U : some & (~0U << (lane + 1));
  const int right = __ffs(static_cast<int>(above)) - 1;
  std::int32_t before = __shfl_sync(kAll, last, max(left, 0));
  std::int32_t after = __shfl_sync(kAll, first, max(right, 0));
  const std::int32_t of_warp = __shfl_sync(kAll, last, some == 0 ? 0 : 31 - __clz(static_cast<int>(some)));
  if (lane == max(__ffs(static_cast<int>(some)) - 1, 0)) {
    scratch.firsts[warp] = first;
    scratch.lasts[warp] = of_warp;
  }
  __syncthreads();
  if (left < 0) {
    before = -1;
    for (int w = warp - 1; w >= 0 && before < 0; --w) before = scratch.lasts[w];
  }
  if (right < 0) {
    after = -1;
    for (int w = warp + 1; w < kBlock / 32 && after < 0; ++w) after = scratch.firsts[w];
    if (after < 0) after = static_cast<std::int32_t>(place.row.chunks);
  }
  for (std::int64_t g = begin; g < end; ++g) {
    plan.live_before[node + g] = before;
    const LiveWord word = __ldcg(live + g);
    if (word != 0) before = highest(g, word);
  }
  for (std::int64_t g = end - 1; g >= begin; --g) {
    plan.live_after[node + g] = after;
    const LiveWord word = __ldcg(live + g);
    if (word != 0) after = lowest(g, word);
  }
}

}  // namespace isofold::cuda
