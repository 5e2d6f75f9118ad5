// One point on a piecewise linear curve, rounded once.
#pragma once

#include <cstdint>
#include <limits>

#include "exact/long_accumulator.hpp"
#include "exact/rounded_quotient.hpp"

namespace isofold {

// The line through (x0, y0) and (x1, y1) at t, x0 < t < x1: (y0 (x1 - t) + y1 (t - x0)) / (x1 - x0).
inline double interpolate_between(double x0, double y0, double x1, double y1, double t, Format format) {
  if (y0 == y1) return round_to(y0, format) + 0.0;
  SumBuilder numerator;
  SumBuilder denominator;
  const TwoTerms right = two_sum(x1, -t);
  const TwoTerms left = two_sum(t, -x0);
  numerator.add_product(y0, right.high);
  numerator.add_product(y0, right.low);
  numerator.add_product(y1, left.high);
  numerator.add_product(y1, left.low);
  denominator.add(x1);
  denominator.add(-x0);
  return rounded_quotient(numerator.finish(), denominator.finish(), format, [&] {
    ProductAccumulator n;
    n.add_product(y0, x1);
    n.add_product(-y0, t);
    n.add_product(y1, t);
    n.add_product(-y1, x0);
    SumAccumulator d;
    d.add(x1);
    d.add(-x0);
    return exact_quotient(n.value(), d.value(), format);
  });
}

// The curve at t, constant outside its knots: x strictly rising, count >= 1.
inline double interpolate_at(const double* x, const double* y, std::int64_t count, double t, Format format) {
  if (t != t) return std::numeric_limits<double>::quiet_NaN();
  if (t <= x[0]) return round_to(y[0], format) + 0.0;
  if (t >= x[count - 1]) return round_to(y[count - 1], format) + 0.0;
  std::int64_t left = 0;  // x[left] <= t < x[right]
  std::int64_t right = count - 1;
  while (right - left > 1) {
    const std::int64_t middle = left + (right - left) / 2;
    (x[middle] <= t ? left : right) = middle;
  }
  if (t == x[left]) return round_to(y[left], format) + 0.0;
  return interpolate_between(x[left], y[left], x[right], y[right], t, format);
}

}  // namespace isofold
