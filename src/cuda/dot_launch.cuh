// The launches of a pass of segment reductions; instantiated for one element type a file.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/dot_chunks.cuh"
#include "cuda/dot_exact.cuh"
#include "cuda/dot_join.cuh"
#include "cuda/offsets.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

// A template only because a kernel must not be defined in several files.
template <class Plan>
__global__ void clear_counts(const __grid_constant__ Plan plan) {
  begin_kernel();
  *plan.faulty_offsets = 0;
  *plan.undecided_count = 0;
  *plan.finished_blocks = 0;
}

template <class T, int kPairs>
cudaError_t launch_pass(const DotPlan& plan, int multiprocessors, cudaStream_t stream) {
  constexpr int kShared = kDotWarps * static_cast<int>(sizeof(DotShared<T>));
  if (const cudaError_t error = cudaFuncSetAttribute(reduce_chunks<T, kPairs>,
                                                     cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
      error != cudaSuccess) {
    return error;
  }
  const auto blocks = [](std::int64_t items, int a_block) {
    return static_cast<unsigned>((items + a_block - 1) / a_block);
  };
  if (plan.prepared == 0) {
    start_kernel(clear_counts<DotPlan>, 1, 1, 0, stream, plan);
    if (plan.offsets != nullptr) start_judging(plan, stream);
  }
  start_kernel(reduce_chunks<T, kPairs>, blocks(plan.chunks, kDotWarps), 32 * kDotWarps, kShared, stream,
               plan);
  if (plan.chunks > 1) {
    const unsigned joiners = blocks(plan.chunks, kJoinThreads);
    start_kernel(join_chunks<kJoinThreads>, joiners, kJoinThreads, 0, stream, plan, joiners);
  }
  const unsigned exact = 4 * static_cast<unsigned>(multiprocessors);
  start_kernel(sum_undecided<T>, exact, 32 * kDotWarps, sizeof(DigitShared), stream, plan, exact);
  return cudaGetLastError();
}

template <class T>
cudaError_t launch_segment_reductions(const DotPlan& plan, int multiprocessors, cudaStream_t stream) {
  if (plan.pair_count == 1) return launch_pass<T, 1>(plan, multiprocessors, stream);
  if (plan.pair_count == 2) return launch_pass<T, 2>(plan, multiprocessors, stream);
  return launch_pass<T, 3>(plan, multiprocessors, stream);
}

}  // namespace isofold::cuda

#define ISOFOLD_CUDA_DOT(Type) \
  template cudaError_t launch_segment_reductions<Type>(const DotPlan&, int, cudaStream_t);
