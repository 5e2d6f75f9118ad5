// Scratch memory and launches of a gradient; instantiated for one pair of value and weight types a file.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/gradient_chunk.cuh"
#include "cuda/gradient_spans.cuh"
#include "cuda/gradient_write.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

template <class I, bool kMean>
cudaError_t launch_gradient_kernels(const GradientPlan<I>& plan, cudaStream_t stream) {
  const auto kernel = gradient_of_chunks<I, kMean>;
  constexpr int kShared = sizeof(GradientShared<I, kMean>);
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
      error != cudaSuccess) {
    return error;
  }
  const auto chunks = static_cast<unsigned>(plan.chunks);
  const auto blocks = [](std::int64_t items, int a_block) {
    return static_cast<unsigned>((items + a_block - 1) / a_block);
  };
  if (plan.offsets != nullptr) {
    if (const cudaError_t error = cudaMemsetAsync(plan.faulty_offsets, 0, sizeof(int), stream);
        error != cudaSuccess) {
      return error;
    }
    start_judging(plan, stream);
  }
  start_kernel(kernel, chunks, kBlock, kShared, stream, plan);
  if (plan.chunks > 1) {
    const auto groups = static_cast<unsigned>(plan.chunks / kGradientGroup);
    if (groups > 0) start_kernel(sum_groups<I, kMean>, groups, kGradientGroup, 0, stream, plan);
    start_kernel(answer_spans<I, kMean>, blocks(plan.chunks, kOwnersABlock), kBlock, 0, stream, plan);
    start_kernel(write_spans<I, kMean>, chunks, kBlock, 0, stream, plan);
    if constexpr (I::kWeighted) {
      if (plan.values.data != nullptr) {
        start_kernel(finish_spans<I>, blocks(plan.chunks, kBlock), kBlock, 0, stream, plan);
      }
    }
  }
  if (plan.offsets != nullptr) {
    start_kernel(refuse_gradient<I>, kRefusingBlocks, kBlock, 0, stream, plan);
  }
  return cudaGetLastError();
}

template <class I>
cudaError_t launch_isotonic_gradient(const GradientPlan<I>& plan, cudaStream_t stream) {
  // Values themselves are only needed for means.
  const bool mean = plan.bounded != 0 || plan.weights.data != nullptr;
  return mean ? launch_gradient_kernels<I, true>(plan, stream)
              : launch_gradient_kernels<I, false>(plan, stream);
}

// Bytes of shared memory that the hungriest kernel asks of a block.
template <class I>
std::int64_t gradient_shared_bytes() {
  return sizeof(GradientShared<I, true>);
}

}  // namespace isofold::cuda

#define ISOFOLD_CUDA_GRADIENT(Value, Weight, Gradient)                                                       \
  template cudaError_t launch_isotonic_gradient(const GradientPlan<GradientInput<Value, Weight, Gradient>>&, \
                                                cudaStream_t);                                               \
  template std::int64_t gradient_shared_bytes<GradientInput<Value, Weight, Gradient>>();
