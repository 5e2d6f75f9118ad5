// Error-free transformations (Knuth 1969, Dekker 1971): a rounded result together with what rounding lost.
#pragma once

#include <cmath>

#include "exact/host_device.hpp"

namespace isofold {

// Half an ulp of one: the largest relative error of a float64 operation.
inline constexpr double kUnitRoundoff = 0x1p-53;

// high + low is the real value. In two_sum that is always so, unless high overflows.
struct TwoTerms {
  double high;
  double low;
};

ISOFOLD_HOST_DEVICE inline TwoTerms two_sum(double a, double b) {
  const double sum = a + b;
  const double b_part = sum - a;
  const double a_part = sum - b_part;
  return {sum, (a - a_part) + (b - b_part)};
}

// two_sum for |a| >= |b| or a == 0.
ISOFOLD_HOST_DEVICE inline TwoTerms quick_two_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

// Exact unless the product overflows or its lowest bit lies below 2^-1074.
ISOFOLD_HOST_DEVICE inline TwoTerms two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

}  // namespace isofold
