// Ragged rows by length, on the device: the host cannot read their offsets.
#pragma once

#include <cstdint>

#include "cuda/offsets.cuh"
#include "cuda/plan.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

// One thread a row.
template <class E>
__global__ void __launch_bounds__(kBlock) classify_rows(const Plan<E> plan) {
  begin_kernel();
  __shared__ LongRow long_rows[kBlock];
  __shared__ std::int64_t numbers[kBlock];
  __shared__ int long_count;
  if (*plan.faulty_offsets != 0) {
    refuse_all(plan, static_cast<unsigned>((plan.rows + kBlock - 1) / kBlock), [&](std::int64_t i) {
      if (plan.output.fit != nullptr) store_fit(plan.output, i, __longlong_as_double(0x7ff8000000000000LL));
      if (plan.output.block_starts != nullptr) plan.output.block_starts[i] = 1;
    });
    return;
  }
  if (threadIdx.x == 0) long_count = 0;
  __syncthreads();
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
  if (row < plan.rows) {
    const std::int64_t begin = plan.offsets[row];
    const std::int64_t length = plan.offsets[row + 1] - begin;
    if (length > longest_short_row(plan)) {
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
}

}  // namespace isofold::cuda
