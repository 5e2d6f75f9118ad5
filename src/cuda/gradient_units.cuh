// What is known of a chunk's terms: a unit that all are multiples of, and a power of two above the largest.
#pragma once

#include <cstdint>
#include <limits>

#include "cuda/team.cuh"
#include "exact/certified_sum.hpp"

namespace isofold::cuda {

// A block of threads' findings, in shared memory. Least, most and union do not depend on the order they are
// formed in.
struct TermBits {
  unsigned smallest;
  unsigned largest;
  unsigned mantissas;
  unsigned low_mantissas;

  __device__ void clear() { *this = {~0U, 0, 0, 0}; }
};

struct TermRange {
  int unit;  // every term is a multiple of 2^unit
  int top;   // and below 2^top
};

// Of floats and doubles, by their upper 32 bits: twice those without the sign. Of `smallest` one is taken, so
// that zero becomes the largest of all.
template <class T>
struct TermTracker {
  static constexpr bool kSingle = sizeof(T) == 4;
  unsigned smallest = ~0U;
  unsigned largest = 0;
  unsigned mantissas = 0;
  unsigned low_mantissas = 0;

  __device__ void see(T term) {
    if constexpr (kSingle) {
      const unsigned twice = __float_as_uint(term) << 1;
      smallest = min(smallest, twice - 1);
      largest = max(largest, twice);
      mantissas |= twice;
    } else {
      const auto high = static_cast<unsigned>(__double2hiint(term));
      const auto low = static_cast<unsigned>(__double2loint(term));
      const unsigned twice = high << 1;
      smallest = min(smallest, (twice | static_cast<unsigned>(low != 0)) - 1);
      largest = max(largest, twice);
      mantissas |= high;
      low_mantissas |= low;
    }
  }
  [[nodiscard]] __device__ bool finite() const { return largest < (kSingle ? 0xff000000U : 0xffe00000U); }

  // Adds the warp's findings to the block's.
  __device__ void leave(TermBits& all) const {
    const unsigned least = warp_min(smallest);
    const unsigned most = warp_max(largest);
    const unsigned bits = warp_or(mantissas);
    const unsigned low_bits = kSingle ? 0U : warp_or(low_mantissas);
    if (threadIdx.x % 32 != 0) return;
    atomicMin(&all.smallest, least);
    atomicMax(&all.largest, most);
    atomicOr(&all.mantissas, bits);
    if constexpr (!kSingle) atomicOr(&all.low_mantissas, low_bits);
  }

  [[nodiscard]] __device__ static TermRange range(const TermBits& bits) {
    if (bits.smallest == ~0U) return {UnitTracker::kNone, 0};
    if constexpr (kSingle) {
      const int lowest = max(static_cast<int>((bits.smallest + 1) >> 24), 1);
      return {lowest - 150 + trailing_zeros(((bits.mantissas >> 1) & 0x7fffffU) | 0x800000U),
              static_cast<int>(bits.largest >> 24) - 126};
    } else {
      const int lowest = max(static_cast<int>((bits.smallest + 1) >> 21), 1);
      const std::uint64_t mantissa =
          (static_cast<std::uint64_t>((bits.mantissas & 0xfffffU) | 0x100000U) << 32) | bits.low_mantissas;
      return {lowest - 1075 + trailing_zeros(mantissa), static_cast<int>(bits.largest >> 21) - 1022};
    }
  }
};

// 2^exponent, or a power of two above it, which may be infinite.
__device__ inline double power_of_two(int exponent) {
  if (exponent > 1023) return std::numeric_limits<double>::infinity();
  if (exponent < -1022) return 0x1p-1022;
  return __longlong_as_double(static_cast<long long>(exponent + 1023) << 52);
}

}  // namespace isofold::cuda
