// The last kernel of segment reductions: the undecided segments, in exact digits. A short one is a block's, a
// long one is cut into slices for all blocks; the last to arrive rounds.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/dot_plan.cuh"
#include "cuda/start_kernel.cuh"
#include "exact/rounded_number.hpp"

namespace isofold::cuda {

// Digits of a block, one copy for each warp: lanes that meet in a word wait for each other.
struct DigitShared {
  unsigned long long digits[kDotWarps][kDigits];
  std::int64_t carried[kDigits];
  unsigned int special;
  int last;
};

__device__ inline unsigned int special_bit(double term) {
  if (term != term) return 1U;
  return term > 0 ? 2U : 4U;
}

// Adds the elements first .. last - 1 of a pair.
template <class T>
ISOFOLD_DEVICE_OUT_OF_LINE void add_digits(const DotPair& pair, std::int64_t first, std::int64_t last,
                                           DigitShared& shared) {
  unsigned long long* digits = shared.digits[threadIdx.x / 32];
  for (std::int64_t i = first + threadIdx.x; i < last; i += 32 * kDotWarps) {
    const double x = as_double(static_cast<const T*>(pair.a)[i]);
    const double y = pair.b != nullptr ? as_double(static_cast<const T*>(pair.b)[i]) : 1.0;
    if (is_finite(x) && is_finite(y)) {
      split_product(x, y, [&](int index, std::int64_t value) {
        atomicAdd(digits + index, static_cast<unsigned long long>(value));
      });
    } else {
      atomicOr(&shared.special, special_bit(x * y));
    }
  }
}

// One thread: rounds what shared.carried holds.
ISOFOLD_DEVICE_OUT_OF_LINE inline void finish_digits(const DotPair& pair, std::int64_t segment,
                                                     DigitShared& shared) {
  double value;
  if (shared.special != 0) {
    SpecialTerms special;
    special.nan = (shared.special & 1U) != 0;
    special.positive = (shared.special & 2U) != 0;
    special.negative = (shared.special & 4U) != 0;
    value = special.sum();
  } else {
    carry_digits(shared.carried);
    const auto number = number_of_digits(shared.carried);
    const Format format = dot_format(pair.out_type);
    value = pair.root != 0 ? rounded_root(number, format) : rounded_number(number, format);
  }
  store_dot(pair, segment, value + 0.0);
}

// The last block leaves the counters as it would like to find them.
__device__ inline void leave_cleared(const DotPlan& plan, unsigned blocks) {
  __syncthreads();
  if (threadIdx.x != 0) return;
  __threadfence();
  if (atomicAdd(plan.finished_blocks, 1U) + 1 != blocks) return;
  *plan.finished_blocks = 0;
  *plan.undecided_count = 0;
}

template <class T>
__global__ void __launch_bounds__(32 * kDotWarps)
    sum_undecided(const __grid_constant__ DotPlan plan, unsigned blocks) {
  begin_kernel();
  auto& shared = *reinterpret_cast<DigitShared*>(dynamic_shared());
  if (plan.offsets != nullptr && *plan.faulty_offsets != 0) {
    // No row is to be trusted.
    const std::int64_t step = static_cast<std::int64_t>(blocks) * 32 * kDotWarps;
    std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * 32 * kDotWarps + threadIdx.x;
    for (; i < plan.rows; i += step) {
      for (int p = 0; p < plan.pair_count; ++p) {
        store_dot(plan.pairs[p], i, __longlong_as_double(0x7ff8000000000000LL));
      }
    }
    leave_cleared(plan, blocks);
    return;
  }
  const auto count = static_cast<std::int64_t>(*plan.undecided_count);
  std::int64_t slots = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t segment = plan.undecided[i] / kMostPairs;
    const DotPair& pair = plan.pairs[plan.undecided[i] % kMostPairs];
    const std::int64_t begin = plan.begin(segment);
    const std::int64_t end = plan.end(segment);
    const std::int64_t slices = (end - begin + kExactSlice - 1) / kExactSlice;
    const bool shares = slices > 1;
    const std::int64_t slot = slots;
    if (shares) ++slots;
    const std::int64_t helpers = min(slices, static_cast<std::int64_t>(blocks));
    if (shares ? blockIdx.x >= helpers : i % blocks != blockIdx.x) continue;

    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < kDotWarps * kDigits; k += 32 * kDotWarps) {
      shared.digits[k / kDigits][k % kDigits] = 0;
    }
    if (threadIdx.x == 0) {
      shared.special = 0;
      shared.last = 1;
    }
    __syncthreads();
    if (!shares) {
      add_digits<T>(pair, begin, end, shared);
    } else {
      for (std::int64_t slice = blockIdx.x; slice < slices; slice += helpers) {
        const std::int64_t first = begin + slice * kExactSlice;
        add_digits<T>(pair, first, min(first + kExactSlice, end), shared);
      }
    }
    __syncthreads();
    for (int k = static_cast<int>(threadIdx.x); k < kDigits; k += 32 * kDotWarps) {
      unsigned long long digit = 0;
      for (int warp = 0; warp < kDotWarps; ++warp) digit += shared.digits[warp][k];
      shared.carried[k] = static_cast<std::int64_t>(digit);
    }
    __syncthreads();
    if (shares) {
      DigitSlot& all = plan.slots[slot];
      if (threadIdx.x == 0) carry_digits(shared.carried);
      __syncthreads();
      for (int k = static_cast<int>(threadIdx.x); k < kDigits; k += 32 * kDotWarps) {
        const auto digit = static_cast<unsigned long long>(shared.carried[k]);
        if (digit != 0) atomicAdd(all.digits + k, digit);
      }
      if (threadIdx.x == 0 && shared.special != 0) atomicOr(&all.special, shared.special);
      __threadfence();
      __syncthreads();
      if (threadIdx.x == 0) {
        const unsigned int before = atomicAdd(&all.arrivals, 1U);
        shared.last = before + 1 == static_cast<unsigned int>(helpers) ? 1 : 0;
        __threadfence();
        if (shared.last != 0) shared.special = __ldcg(&all.special);
      }
      __syncthreads();
      if (shared.last != 0) {
        for (int k = static_cast<int>(threadIdx.x); k < kDigits; k += 32 * kDotWarps) {
          shared.carried[k] = static_cast<std::int64_t>(__ldcg(all.digits + k));
        }
      }
      __syncthreads();
    }
    if (threadIdx.x == 0 && shared.last != 0) finish_digits(pair, segment, shared);
  }
  leave_cleared(plan, blocks);
}

}  // namespace isofold::cuda
