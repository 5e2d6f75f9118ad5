// Scratch memory and launches of one call, for one pair of types.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "cuda/classify.cuh"
#include "cuda/edges.cuh"
#include "cuda/long_fit.cuh"
#include "cuda/long_rows.cuh"
#include "cuda/short_rows.cuh"

namespace isofold::cuda {

// Hands out aligned pieces of a block of memory, or only counts them when there is none.
class Carver {
 public:
  explicit Carver(void* memory) : base_(static_cast<unsigned char*>(memory)) {}

  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAlignment = 256;
    T* result = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    return result;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  unsigned char* base_;
  std::int64_t used_ = 0;
};

// Places the plan's scratch in `memory`; the first bytes, whose number is returned in `zeroed`, must be
// zeroed before a run. Returns the size of it all.
template <class E>
std::int64_t place_scratch(Plan<E>& plan, void* memory, std::int64_t* zeroed) {
  Carver carver(memory);
  const bool ragged = plan.offsets != nullptr;
  std::int64_t long_rows = 0;
  std::int64_t chunks = 0;
  if (ragged) {
    long_rows = std::min(plan.rows, plan.total / (kLongChunk + 1));
    chunks = long_rows == 0 ? 0 : plan.total / kLongChunk + long_rows;
  } else if (plan.row_length > kLongChunk) {
    long_rows = plan.rows;
    chunks = plan.rows * ((plan.row_length + kLongChunk - 1) / kLongChunk);
  }
  plan.long_rows_bound = long_rows;
  plan.chunks_bound = chunks;
  const auto nodes = [&](int level) { return chunks == 0 ? 0 : (chunks >> (5 * level)) + long_rows + 1; };
  plan.counts = carver.take<unsigned long long>(ragged ? kClasses + 1 : 0);
  plan.refused = carver.take<int>(long_rows);
  for (int level = 1; level < kLevels; ++level) plan.arrivals[level] = carver.take<int>(nodes(level));
  *zeroed = carver.used();
  if (ragged) {
    std::int64_t shortest = 1;
    for (int c = 0; c < kClasses; ++c) {
      plan.class_rows[c] = carver.take<std::int64_t>(std::min(plan.rows, plan.total / shortest));
      shortest = class_size(c) * kTile + 1;
    }
    plan.long_rows = carver.take<LongRow>(long_rows);
    plan.chunk_row = carver.take<std::int32_t>(chunks);
  }
  plan.slots = carver.take<Slot<E>>(chunks);
  plan.chunks = carver.take<ChunkRecord>(chunks);
  for (int level = 0; level < kLevels; ++level) {
    const std::int64_t count = level == 0 ? chunks : nodes(level);
    plan.sums[level] = carver.take<SpanSums>(count);
    plan.bases[level] = carver.take<Base>(count);
  }
  plan.live = carver.take<std::uint32_t>(nodes(1));
  plan.live_before = carver.take<std::int32_t>(nodes(1));
  plan.live_after = carver.take<std::int32_t>(nodes(1));
  return carver.used();
}

template <class Shared, class Kernel>
cudaError_t prepare(Kernel kernel) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(sizeof(Shared)));
}

// What the hungriest kernel of these types asks of a block.
template <class E>
std::int64_t shared_bytes() {
  return std::max({sizeof(RowShared<E, 1>), sizeof(RowShared<E, 4>), sizeof(RowShared<E, 32>),
                   sizeof(RowShared<E, kBlock>), sizeof(LongShared<E>), sizeof(WriteShared<E>)});
}

inline unsigned blocks_for(std::int64_t items, std::int64_t a_block) {
  return static_cast<unsigned>((items + a_block - 1) / a_block);
}

template <class E, int Size>
cudaError_t launch_short_rows(const Plan<E>& plan, int row_class, std::int64_t rows, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  using Shared = RowShared<E, Size>;
  if (const cudaError_t error = prepare<Shared>(fit_short_rows<E, Size>); error != cudaSuccess) return error;
  fit_short_rows<E, Size>
      <<<blocks_for(rows, kBlock / Size), kBlock, sizeof(Shared), stream>>>(plan, row_class);
  return cudaGetLastError();
}

template <class E>
cudaError_t launch_long_rows(const Plan<E>& plan, cudaStream_t stream) {
  if (plan.chunks_bound == 0) return cudaSuccess;
  if (const cudaError_t error = prepare<LongShared<E>>(solve_chunks<E>); error != cudaSuccess) return error;
  if (const cudaError_t error = prepare<WriteShared<E>>(write_chunks<E>); error != cudaSuccess) return error;
  const auto chunks = static_cast<unsigned>(plan.chunks_bound);
  solve_chunks<E><<<chunks, kBlock, sizeof(LongShared<E>), stream>>>(plan);
  find_neighbours<E><<<static_cast<unsigned>(plan.long_rows_bound), kBlock, 0, stream>>>(plan);
  value_edges<E><<<blocks_for(plan.chunks_bound, kEdgesABlock), 32 * kEdgesABlock, 0, stream>>>(plan);
  write_chunks<E><<<chunks, kBlock, sizeof(WriteShared<E>), stream>>>(plan);
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
    classify_rows<E><<<blocks_for(plan.rows, kBlock), kBlock, 0, stream>>>(plan);
    if (const cudaError_t error = cudaGetLastError(); error != cudaSuccess) return error;
  }
  std::int64_t shorter = 0;
  const auto rows_of = [&](int row_class) {
    const std::int64_t longest = std::int64_t{class_size(row_class)} * kTile;
    const std::int64_t above = shorter;
    shorter = longest;
    if (ragged) return std::min(plan.rows, plan.total / (above + 1));
    return plan.row_length > above && plan.row_length <= longest ? plan.rows : 0;
  };
  cudaError_t error = launch_short_rows<E, 1>(plan, 0, rows_of(0), stream);
  if (error == cudaSuccess) error = launch_short_rows<E, 4>(plan, 1, rows_of(1), stream);
  if (error == cudaSuccess) error = launch_short_rows<E, 32>(plan, 2, rows_of(2), stream);
  if (error == cudaSuccess) error = launch_short_rows<E, kBlock>(plan, 3, rows_of(3), stream);
  if (error == cudaSuccess) error = launch_long_rows(plan, stream);
  return error;
}

}  // namespace isofold::cuda
