// Running totals of a chunk of floats whose sums do not fit a double, in two that are exact: every value is
// cut at a power of two U into a multiple of U and a rest of at most U / 2.
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda/team.cuh"
#include "exact/certified_sum.hpp"

namespace isofold::cuda {

// With M <= 2^50 U the sums of the multiples are below 2^51 U; 2^13 rests sum to at most 2^12 U, exact as a
// double if that is below 2^53 units.
__device__ inline bool exact_in_two(double magnitude, int unit) {
  return magnitude_exponent(magnitude) + 1 <= unit + 50 + 53 - 12;
}

// Calls visit(i, total before element i) for all elements of a row's window of at most 2^13, and returns its
// total. A warp; every lane visits its own stretch, in order.
template <class E, class Visit>
__device__ DoubleDouble visit_totals(const E& row, std::int64_t origin, int length, double magnitude,
                                     Visit visit) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int share = (length + 31) / 32;
  const int begin = lane * share;
  const int end = min(begin + share, length);
  const double cut = std::scalbn(0x1.8p52, magnitude_exponent(magnitude) + 1 - 50);
  double high = 0;
  double low = 0;
  const auto add = [&](int i) {
    const double value = row.value(origin + i);
    const double multiple = (value + cut) - cut;
    high += multiple;
    low += value - multiple;
  };
  for (int i = begin; i < end; ++i) add(i);
  const Team<32> team{nullptr};
  const auto highs = team.scan(high);
  const auto lows = team.scan(low);
  high = highs.before;
  low = lows.before;
  for (int i = begin; i < end; ++i) {
    const TwoTerms total = two_sum(high, low);
    visit(i, DoubleDouble{total.high, total.low});
    add(i);
  }
  const TwoTerms all = two_sum(highs.all, lows.all);
  return {all.high, all.low};
}

}  // namespace isofold::cuda
