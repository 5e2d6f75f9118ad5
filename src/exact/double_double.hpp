// Sums as unevaluated pairs of doubles.
//
// Two facts carry the certificates of this library. Let every term be a multiple of a unit U = 2^k, and let
// the sum of the terms' magnitudes be below 2^100 U.
//  1. Every operation here on partial sums of those terms is EXACT: each quantity that is rounded is a
//  multiple of U
//     and at most a few ulps of a number below 2^100 U, hence below 2^53 U.
//  2. Otherwise one operation errs by at most 4 u^2 times the sum of magnitudes, u = 2^-53.
#pragma once

#include "exact/host_device.hpp"
#include "exact/two_sum.hpp"

namespace isofold {

struct DoubleDouble {
  double high = 0.0;
  double low = 0.0;
};

ISOFOLD_HOST_DEVICE inline DoubleDouble operator+(DoubleDouble a, double b) {
  const TwoTerms sum = two_sum(a.high, b);
  const TwoTerms renormalized = quick_two_sum(sum.high, sum.low + a.low);
  return {renormalized.high, renormalized.low};
}

ISOFOLD_HOST_DEVICE inline DoubleDouble operator+(DoubleDouble a, DoubleDouble b) {
  const TwoTerms high = two_sum(a.high, b.high);
  const TwoTerms low = two_sum(a.low, b.low);
  const TwoTerms once = quick_two_sum(high.high, high.low + low.high);
  const TwoTerms twice = quick_two_sum(once.high, once.low + low.low);
  return {twice.high, twice.low};
}

ISOFOLD_HOST_DEVICE inline DoubleDouble operator-(DoubleDouble a) { return {-a.high, -a.low}; }

ISOFOLD_HOST_DEVICE inline DoubleDouble operator-(DoubleDouble a, DoubleDouble b) { return a + (-b); }

}  // namespace isofold
