// Ragged rows by length, on the device: the host cannot read their offsets.
#pragma once

#include <cstdint>

#include "cuda/plan.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

// One thread a row. A row whose own offsets, or whose neighbours', do not rise within [0, total] is refused:
// it comes out NaN where it lies inside the batch.
template <class E>
__global__ void __launch_bounds__(kBlock) classify_rows(const Plan<E> plan) {
  __shared__ LongRow long_rows[kBlock];
  __shared__ std::int64_t numbers[kBlock];
  __shared__ int long_count;
  __shared__ int refused_count;
  __shared__ std::int64_t refused_begin[kBlock];
  __shared__ std::int64_t refused_end[kBlock];
  if (threadIdx.x == 0) {
    long_count = 0;
    refused_count = 0;
  }
  __syncthreads();
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row < plan.rows) {
    const std::int64_t begin = plan.offsets[row];
    const std::int64_t end = plan.offsets[row + 1];
    const bool rises = begin >= 0 && begin <= end && end <= plan.total && (row != 0 || begin == 0) &&
                       (row + 1 != plan.rows || end == plan.total) &&
                       (row == 0 || plan.offsets[row - 1] <= begin) &&
                       (row + 1 == plan.rows || end <= plan.offsets[row + 2]);
    const std::int64_t length = end - begin;
    if (!rises) {
      const int place = atomicAdd(&refused_count, 1);
      refused_begin[place] = begin < 0 ? 0 : begin;
      refused_end[place] = end < plan.total ? end : plan.total;
    } else if (length > kLongChunk) {
      const std::int64_t chunks = (length + kLongChunk - 1) / kLongChunk;
      const auto packed = atomicAdd(plan.counts + kClasses, (1ULL << kChunkBits) | chunks);
      const LongRow found{begin, length, static_cast<std::int64_t>(packed & ((1ULL << kChunkBits) - 1)),
                          chunks};
      plan.long_rows[packed >> kChunkBits] = found;
      const int place = atomicAdd(&long_count, 1);
      long_rows[place] = found;
      numbers[place] = static_cast<std::int64_t>(packed >> kChunkBits);
    } else if (length > 0) {
      int row_class = 0;
      while (length > class_size(row_class) * kTile) ++row_class;
      const auto peers = __match_any_sync(__activemask(), row_class);
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const int leader = __ffs(static_cast<int>(peers)) - 1;
      unsigned long long first = 0;
      if (lane == leader)
        first = atomicAdd(plan.counts + row_class, static_cast<unsigned long long>(__popc(peers)));
      first = __shfl_sync(peers, first, leader);
      plan.class_rows[row_class][first + __popc(peers & ((1U << lane) - 1U))] = row;
    }
  }
  __syncthreads();
  for (int i = 0; i < long_count; ++i) {
    for (std::int64_t c = threadIdx.x; c < long_rows[i].chunks; c += kBlock) {
      plan.chunk_row[long_rows[i].first_chunk + c] = static_cast<std::int32_t>(numbers[i]);
    }
  }
  for (int i = 0; i < refused_count; ++i) {
    for (std::int64_t k = refused_begin[i]; k < refused_end[i]; k += 1 << 20) {
      const std::int64_t left = refused_end[i] - k;
      write_refused<kBlock>(plan.output, k, static_cast<int>(left < 1 << 20 ? left : 1 << 20),
                            k == refused_begin[i]);
    }
  }
}

}  // namespace isofold::cuda
