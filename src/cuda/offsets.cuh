// Row offsets in device memory, which no host can check. One fault among them leaves no row to be trusted, so
// all come out NaN, as the CPU refuses the call. Without a fault the rows are a partition of the batch: what
// their number and lengths bound, scratch memory above all, is large enough.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/start_kernel.cuh"
#include "cuda/team.cuh"

namespace isofold::cuda {

// One thread a row: whether the offsets rise from 0 to the total. `faulty` is 0 before.
template <class Plan>
__global__ void __launch_bounds__(kBlock) judge_offsets(const Plan plan) {
  begin_kernel();
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row >= plan.rows) return;
  const std::int64_t begin = plan.offsets[row];
  const std::int64_t end = plan.offsets[row + 1];
  const bool right = begin <= end && (row != 0 || begin == 0) && (row + 1 != plan.rows || end == plan.total);
  if (!right) *plan.faulty_offsets = 1;  // whoever stores it stores the same
}

template <class Plan>
void start_judging(const Plan& plan, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((plan.rows + kBlock - 1) / kBlock);
  start_kernel(judge_offsets<Plan>, blocks, kBlock, 0, stream, plan);
}

// Calls `refuse(i)` for every element of the batch, `blocks` blocks together.
template <class Plan, class Refuse>
__device__ void refuse_all(const Plan& plan, unsigned blocks, Refuse refuse) {
  const std::int64_t step = static_cast<std::int64_t>(blocks) * kBlock;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  for (; i < plan.total; i += step) refuse(i);
}

}  // namespace isofold::cuda
