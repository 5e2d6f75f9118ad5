// A block's histogram in shared memory, of 32-bit words.
//
// A column belongs to a feature, or to one of the rows that a warp takes at once. With 32 columns a bin's
// words lie in as many banks, and a lane only ever touches the bank of its column: no two lanes of a warp
// meet, whatever the data. Sums are kept in four words a cell:
//   low words of the gradients, each made positive by adding 2^29, and of the hessians;
//   the number of rows, and above it how often the gradients' low word has overflowed;
//   how often the hessians' has: seldom, as they have 24 bits, so this word is not always touched.
// Integer sums do not depend on the order in which the threads come.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "algorithm/gradient_grid.hpp"

namespace isofold::cuda {

inline constexpr int kCountBits = 17;
inline constexpr std::int64_t kMostBlockRows = (std::int64_t{1} << kCountBits) - 8;  // a multiple of 8
// A block's overflows: kMostBlockRows terms of at most 2^30.
static_assert((kMostBlockRows * (2 * std::int64_t{kMostGradient}) >> 32) < std::int64_t{1}
                                                                               << (32 - kCountBits));

inline constexpr int kCellBytes = 16;

struct BlockHistogram {
  std::uint32_t* gradients;
  std::uint32_t* hessians;
  std::uint32_t* counts;
  std::uint32_t* hessian_overflows;

  __device__ BlockHistogram(unsigned char* memory, int cells)
      : gradients(reinterpret_cast<std::uint32_t*>(memory)),
        hessians(gradients + cells),
        counts(hessians + cells),
        hessian_overflows(counts + cells) {}

  __device__ void add(int cell, QuantizedGradient q) const {
    const std::uint32_t g = static_cast<std::uint32_t>(q.gradient + kMostGradient);
    const std::uint32_t h = static_cast<std::uint32_t>(q.hessian);
    const std::uint32_t g_before = atomicAdd(gradients + cell, g);
    const std::uint32_t h_before = atomicAdd(hessians + cell, h);
    const std::uint32_t overflow = g_before + g < g ? 1U << kCountBits : 0U;
    atomicAdd(counts + cell, 1U + overflow);
    if (h_before + h < h) atomicAdd(hessian_overflows + cell, 1U);
  }

  struct Sums {
    std::int64_t gradient;
    std::int64_t hessian;
    std::int32_t count;
  };
  [[nodiscard]] __device__ Sums sums(int cell) const {
    const std::uint32_t word = counts[cell];
    const std::int64_t rows = word & ((1U << kCountBits) - 1);
    const std::int64_t high = word >> kCountBits;
    return {(high << 32 | gradients[cell]) - rows * kMostGradient,
            static_cast<std::int64_t>(hessian_overflows[cell]) << 32 | hessians[cell],
            static_cast<std::int32_t>(rows)};
  }
};

}  // namespace isofold::cuda
