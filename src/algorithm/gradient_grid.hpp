// Gradients on a fixed-point grid whose unit is a power of two (isofold/histogram.hpp).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "exact/host_device.hpp"
#include "exact/power_of_two.hpp"
#include "isofold/histogram.hpp"

namespace isofold {

// Why these. Sums of 2^31 gradients stay below 2^60, so that 64 bits hold them and nothing widens. A sum of
// 2^16 - 1 hessians stays below 2^40, which leaves a CPU 24 bits of the same word for the count; and on a GPU
// sums of 2^17 - 1 gradients, made positive by adding 2^29, carry out of 32 bits less than 2^15 times, which
// leaves 17 bits of a word for the count (cuda/histogram_block.cuh).
inline constexpr int kGradientBits = 29;
inline constexpr int kHessianBits = 24;
inline constexpr std::int32_t kMostGradient = std::int32_t{1} << kGradientBits;
inline constexpr std::int32_t kMostHessian = std::int32_t{1} << kHessianBits;

// The unit's exponent such that `largest` lies in [2^(bits-1), 2^bits) units. Every double is a multiple of
// 2^-1074, so there is no use for a smaller unit.
ISOFOLD_HOST_DEVICE inline std::int32_t grid_exponent(double largest, int bits) {
  const int exponent = (largest > 0 ? exponent_of(largest) : 0) - bits + 1;
  return exponent < -1074 ? -1074 : exponent;
}

ISOFOLD_HOST_DEVICE inline GradientGrid make_grid(double largest_gradient, double largest_hessian) {
  return {grid_exponent(largest_gradient, kGradientBits), grid_exponent(largest_hessian, kHessianBits), 0};
}

// Exponents that a grid can have; what a caller gives is checked against them.
ISOFOLD_HOST_DEVICE inline bool sound(const GradientGrid& grid) {
  const auto inside = [](std::int32_t exponent) { return exponent >= -1074 && exponent <= 1023; };
  return inside(grid.gradient_exponent) && inside(grid.hessian_exponent);
}

// What a Quantizer makes; a caller's own pairs may be anything.
ISOFOLD_HOST_DEVICE inline bool on_grid(const QuantizedGradient& q) {
  return static_cast<std::uint32_t>(q.gradient) + kMostGradient <= 2U * kMostGradient &&
         static_cast<std::uint32_t>(q.hessian) <= static_cast<std::uint32_t>(kMostHessian);
}

class Quantizer {
 public:
  ISOFOLD_HOST_DEVICE explicit Quantizer(const GradientGrid& grid)
      : gradient_(grid.gradient_exponent), hessian_(grid.hessian_exponent) {}

  // Whether the grid holds them; a NaN is nowhere.
  [[nodiscard]] ISOFOLD_HOST_DEVICE bool holds(double gradient, double hessian) const {
    return std::fabs(gradient_.apply(gradient)) <= kMostGradient && hessian >= 0 &&
           hessian_.apply(hessian) <= kMostHessian;
  }
  ISOFOLD_HOST_DEVICE QuantizedGradient operator()(double gradient, double hessian) const {
    const std::int32_t h = nearest(hessian_.apply(hessian));
    return {nearest(gradient_.apply(gradient)), h == 0 && hessian > 0 ? 1 : h};
  }

 private:
  // Times 2^-exponent in two factors, since one may be beyond doubles. Exact, unless the result is so small
  // that it is rounded to zero next.
  struct Factors {
    double first;
    double second;
    ISOFOLD_HOST_DEVICE explicit Factors(int exponent)
        : first(power_of_two(-exponent / 2)), second(power_of_two(-exponent - -exponent / 2)) {}
    [[nodiscard]] ISOFOLD_HOST_DEVICE double apply(double x) const { return x * first * second; }
  };
  // |x| <= 2^31: the sum's unit is 1, so it is rounded to an integer, ties to even, that its low bits hold.
  ISOFOLD_HOST_DEVICE static std::int32_t nearest(double x) {
    constexpr double kMagic = 0x1.8p52;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(x + kMagic)));
  }

  Factors gradient_;
  Factors hessian_;
};

}  // namespace isofold
