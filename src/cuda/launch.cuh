// The launches of one call, for one pair of types.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "cuda/classify.cuh"
#include "cuda/edges.cuh"
#include "cuda/few_chunks.cuh"
#include "cuda/filter_chunks.cuh"
#include "cuda/lane_rows.cuh"
#include "cuda/long_fit.cuh"
#include "cuda/long_rows.cuh"
#include "cuda/scratch.cuh"
#include "cuda/short_rows.cuh"
#include "cuda/sparse_rows.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

template <class Shared, class Kernel>
cudaError_t prepare(Kernel kernel) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(sizeof(Shared)));
}

// What the hungriest kernel of these types asks of a block.
template <class E>
std::int64_t shared_bytes() {
  return std::max({sizeof(RowShared<E, 1>), sizeof(RowShared<E, 4>), sizeof(RowShared<E, 32>),
                   sizeof(RowShared<E, kBlock>), sizeof(LongShared<E>), sizeof(WriteShared<E>),
                   sizeof(ScanShared<E>), sizeof(FewShared<E>), sizeof(FilteredRowShared<E, kScanTiles>)});
}

inline cudaError_t count_multiprocessors(int* multiprocessors) {
  int device = 0;
  if (const cudaError_t error = cudaGetDevice(&device); error != cudaSuccess) return error;
  return cudaDeviceGetAttribute(multiprocessors, cudaDevAttrMultiProcessorCount, device);
}

inline constexpr int kLightWaves = 8;  // of blocks that write the chunks of ragged rows

inline unsigned blocks_for(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

template <class E, int Size>
cudaError_t launch_short_rows(const Plan<E>& plan, int row_class, cudaStream_t stream) {
  const std::int64_t rows = rows_of_class(plan, row_class);
  if (rows == 0) return cudaSuccess;
  using Shared = RowShared<E, Size>;
  if (const cudaError_t error = prepare<Shared>(fit_short_rows<E, Size>); error != cudaSuccess) return error;
  if constexpr (Size >= 32) {
    using Filtered = FilteredRowShared<E, Size>;
    if (const cudaError_t error = prepare<Filtered>(filter_rows<E, Size>); error != cudaSuccess) return error;
    start_kernel(filter_rows<E, Size>, blocks_for(rows, kFilterWarps), 32 * kFilterWarps, sizeof(Filtered),
                 stream, plan, row_class);
  } else if constexpr (!E::kWeighted) {
    if (plan.lane_rows != 0) {
      const int longest = plan.offsets != nullptr ? Size * kTile : static_cast<int>(plan.row_length);
      const int bytes = kLaneRowWarps * lane_warp_bytes<typename E::Value>(longest);
      // Always the same, whatever the class: to change a kernel's attribute may wait for the device.
      constexpr int kMost = kLaneRowWarps * lane_warp_bytes<typename E::Value>(kLongestLaneRow);
      if (const cudaError_t error =
              cudaFuncSetAttribute(fit_lane_rows<E>, cudaFuncAttributeMaxDynamicSharedMemorySize, kMost);
          error != cudaSuccess) {
        return error;
      }
      start_kernel(fit_lane_rows<E>, blocks_for(rows, 32 * kLaneRowWarps), 32 * kLaneRowWarps,
                   static_cast<std::size_t>(bytes), stream, plan, row_class, longest);
    }
  }
  unsigned blocks = blocks_for(rows, kBlock / Size);
  if (plan.offsets != nullptr || plan.lane_rows != 0 || Size >= 32) {
    int multiprocessors = 0;
    if (const cudaError_t error = count_multiprocessors(&multiprocessors); error != cudaSuccess) return error;
    blocks = std::min(blocks, static_cast<unsigned>(multiprocessors * kResident<Shared>));
  }
  start_kernel(fit_short_rows<E, Size>, blocks, kBlock, sizeof(Shared), stream, plan, row_class, blocks);
  return cudaGetLastError();
}

template <class E>
cudaError_t launch_long_rows(const Plan<E>& plan, cudaStream_t stream) {
  if (plan.chunks_bound == 0) return cudaSuccess;
  if (const cudaError_t error = prepare<ScanShared<E>>(scan_groups<E>); error != cudaSuccess) return error;
  if (const cudaError_t error = prepare<FilterShared<E>>(filter_chunks<E>); error != cudaSuccess)
    return error;
  if (const cudaError_t error = prepare<FewShared<E>>(merge_few_chunks<E>); error != cudaSuccess)
    return error;
  if (const cudaError_t error = prepare<LongShared<E>>(solve_and_merge<E>); error != cudaSuccess)
    return error;
  if (const cudaError_t error = prepare<WriteShared<E>>(write_dense_chunks<E>); error != cudaSuccess)
    return error;
  int multiprocessors = 0;
  if (const cudaError_t error = count_multiprocessors(&multiprocessors); error != cudaSuccess) return error;
  const auto solvers = static_cast<unsigned>(
      std::min<std::int64_t>(plan.chunks_bound, multiprocessors * kResident<LongShared<E>>));
  const unsigned scanners = blocks_for(plan.chunks_bound * (kGroups / kGroupsAWarp), kScanWarps);
  start_kernel(scan_groups<E>, scanners, 32 * kScanWarps, sizeof(ScanShared<E>), stream, plan);
  start_kernel(filter_chunks<E>, blocks_for(plan.chunks_bound, kFilterWarps), 32 * kFilterWarps,
               sizeof(FilterShared<E>), stream, plan);
  const bool few = plan.offsets != nullptr || (plan.row_length - 1) / kLongChunk < kFewChunks;
  if (few) {
    start_kernel(merge_few_chunks<E>, blocks_for(nodes_bound(plan, 1), kFewWarps), 32 * kFewWarps,
                 sizeof(FewShared<E>), stream, plan);
  }
  start_kernel(solve_and_merge<E>, solvers, kBlock, sizeof(LongShared<E>), stream, plan, few ? 1 : 0,
               static_cast<int>(solvers));
  start_kernel(value_edges<E>, blocks_for(plan.chunks_bound, kEdgesABlock), 32 * kEdgesABlock, 0, stream,
               plan);
  if (plan.offsets == nullptr) {
    start_kernel(write_chunks<E>, static_cast<unsigned>(plan.chunks_bound), kBlock, 0, stream, plan);
  } else {
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(
        plan.chunks_bound, std::int64_t{multiprocessors} * kLightResident * kLightWaves));
    start_kernel(write_ragged_chunks<E>, blocks, kBlock, 0, stream, plan, static_cast<int>(blocks));
  }
  const auto writers = static_cast<unsigned>(
      std::min<std::int64_t>(plan.chunks_bound, multiprocessors * kResident<WriteShared<E>>));
  start_kernel(write_dense_chunks<E>, writers, kBlock, sizeof(WriteShared<E>), stream, plan,
               static_cast<int>(writers));
  return cudaGetLastError();
}

template <class E>
cudaError_t launch_isotonic_regression(const Plan<E>& plan, std::int64_t zeroed, void* scratch,
                                       cudaStream_t stream) {
  if (zeroed > 0) {
    if (const cudaError_t error = cudaMemsetAsync(scratch, 0, static_cast<std::size_t>(zeroed), stream);
        error != cudaSuccess) {
      return error;
    }
  }
  const bool ragged = plan.offsets != nullptr;
  if (ragged) {
    start_judging(plan, stream);
    start_kernel(classify_rows<E>, blocks_for(plan.rows, kBlock), kBlock, 0, stream, plan);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  cudaError_t error = launch_short_rows<E, 1>(plan, 0, stream);
  if (error == cudaSuccess) error = launch_short_rows<E, 4>(plan, 1, stream);
  if (error == cudaSuccess) error = launch_short_rows<E, 32>(plan, 2, stream);
  if (error == cudaSuccess) error = launch_short_rows<E, kBlock>(plan, 3, stream);
  if (error == cudaSuccess) error = launch_long_rows(plan, stream);
  return error;
}

}  // namespace isofold::cuda
