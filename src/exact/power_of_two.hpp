// Multiplication by powers of two: exact wherever the result is a normal number, and in any case the same on
// a CPU and on a GPU.
#pragma once

#include <bit>
#include <cstdint>

#include "exact/host_device.hpp"

namespace isofold {

// 2^exponent for a normal result: -1022 <= exponent <= 1023.
ISOFOLD_HOST_DEVICE inline double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

// The exponent e of 2^e <= x < 2^(e+1) for finite x > 0.
ISOFOLD_HOST_DEVICE inline int exponent_of(double x) {
  const auto field = static_cast<int>(std::bit_cast<std::uint64_t>(x) >> 52);
  if (field != 0) return field - 1023;
  return static_cast<int>(std::bit_cast<std::uint64_t>(x * 0x1p54) >> 52) - 1023 - 54;
}

// x * 2^exponent in steps that no double is too small for.
ISOFOLD_HOST_DEVICE inline double scaled(double x, int exponent) {
  constexpr int kStep = 1000;
  for (; exponent > kStep; exponent -= kStep) x *= 0x1p1000;
  for (; exponent < -kStep; exponent += kStep) x *= 0x1p-1000;
  return x * power_of_two(exponent);
}

}  // namespace isofold
