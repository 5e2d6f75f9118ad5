// The second kernel of segment reductions: puts together the segments that lie over several chunks.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/dot_plan.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

inline constexpr std::int64_t kWarpSpan = 512;  // chunks whose heads one warp adds up

// The heads of the chunks first, first + step, .. up to last, in every lane.
__device__ inline CompensatedSum sum_heads(const DotPlan& plan, int pair, std::int64_t first,
                                           std::int64_t last, int step) {
  CompensatedSum sum;
#pragma unroll 4
  for (std::int64_t chunk = first; chunk <= last; chunk += step) {
    sum = sum + plan.heads[chunk * plan.pair_count + pair];
  }
  return sum_over_lanes(sum, 32);
}

// One thread a chunk: a segment is finished by the thread in whose chunk it begins, with the help of its warp
// or, over very many chunks, of its block. Also clears the digits that the next kernel may need.
template <int kThreads>
__global__ void __launch_bounds__(kThreads)
    join_chunks(const __grid_constant__ DotPlan plan, unsigned blocks) {
  begin_kernel();
  __shared__ std::int64_t long_chunks[kThreads];
  __shared__ int long_count;
  __shared__ CompensatedSum warp_sums[kThreads / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const std::int64_t slot_words = plan.slot_count * static_cast<std::int64_t>(sizeof(DigitSlot) / 8);
  for (std::int64_t i = thread; i < slot_words; i += static_cast<std::int64_t>(blocks) * kThreads) {
    reinterpret_cast<unsigned long long*>(plan.slots)[i] = 0;
  }
  if (plan.offsets != nullptr && *plan.faulty_offsets != 0) return;

  if (threadIdx.x == 0) long_count = 0;
  __syncthreads();
  const std::int64_t segment = thread < plan.chunks ? plan.tail_segment[thread] : -1;
  const std::int64_t last = segment >= 0 ? (plan.end(segment) - 1) / kDotChunk : thread;
  const bool is_long = last - thread > kWarpSpan;
  if (is_long) long_chunks[atomicAdd(&long_count, 1)] = thread;
  std::uint32_t owners = __ballot_sync(0xffffffffU, segment >= 0 && !is_long);
  for (; owners != 0; owners &= owners - 1) {
    const int owner = __ffs(static_cast<int>(owners)) - 1;
    const std::int64_t chunk = __shfl_sync(0xffffffffU, thread, owner);
    const std::int64_t last_chunk = __shfl_sync(0xffffffffU, last, owner);
    for (int p = 0; p < plan.pair_count; ++p) {
      const CompensatedSum heads = sum_heads(plan, p, chunk + 1 + lane, last_chunk, 32);
      if (lane == owner) finish_segment(plan, p, segment, plan.tails[chunk * plan.pair_count + p] + heads);
    }
  }
  __syncthreads();
  const int count = long_count;
  for (int i = 0; i < count; ++i) {
    const std::int64_t chunk = long_chunks[i];
    const std::int64_t whose = plan.tail_segment[chunk];
    const std::int64_t last_chunk = (plan.end(whose) - 1) / kDotChunk;
    for (int p = 0; p < plan.pair_count; ++p) {
      const CompensatedSum part =
          sum_heads(plan, p, chunk + 1 + static_cast<std::int64_t>(threadIdx.x), last_chunk, kThreads);
      if (lane == 0) warp_sums[warp] = part;
      __syncthreads();
      if (warp == 0) {
        const CompensatedSum mine = lane < kThreads / 32 ? warp_sums[lane] : CompensatedSum{};
        const CompensatedSum heads = sum_over_lanes(mine, 32);
        if (lane == 0) finish_segment(plan, p, whose, plan.tails[chunk * plan.pair_count + p] + heads);
      }
      __syncthreads();
    }
  }
}

}  // namespace isofold::cuda
