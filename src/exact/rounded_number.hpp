// Exact numbers and their square roots, rounded once.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exact/exact_number.hpp"
#include "exact/format.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// k 2^last_place, with what overflows the format.
ISOFOLD_HOST_DEVICE inline double composed(std::int64_t k, int last_place, bool negative, Format format) {
  double magnitude = std::ldexp(static_cast<double>(k), last_place);
  if (format.precision < 53 && magnitude >= std::ldexp(1.0, format.overflow)) {
    magnitude = std::numeric_limits<double>::infinity();
  }
  return negative && magnitude != 0.0 ? -magnitude : magnitude;
}

// Of a number whose highest bit lies just below `top`, the exponent of the format's last place there.
ISOFOLD_HOST_DEVICE inline int last_place_at(int top, Format format) {
  const int natural = top - format.precision;
  return natural > format.lowest_exponent ? natural : format.lowest_exponent;
}

template <int Capacity>
ISOFOLD_OUT_OF_LINE double rounded_number(const ExactNumber<Capacity>& x, Format format) {
  if (x.sign == 0) return 0.0;
  const int last_place = last_place_at(x.top(), format);
  if (x.top() < last_place - 1) return 0.0;
  auto k = static_cast<std::int64_t>(x.top() > last_place ? x.window(last_place) : 0);
  const bool half = (x.window(last_place - 1) & 1) != 0;
  const bool more = x.exponent + trailing_zeros(x.limb[0]) < last_place - 1;
  if (half && (more || k % 2 != 0)) ++k;
  return composed(k, last_place, x.sign < 0, format);
}

// x >= 0. With lsb the format's last place at the root, find the integer k with (k lsb)^2 <= x < ((k + 1)
// lsb)^2, then compare x with ((2k + 1) lsb / 2)^2, the midpoint's square.
template <int Capacity>
ISOFOLD_OUT_OF_LINE double rounded_root(const ExactNumber<Capacity>& x, Format format) {
  if (x.sign == 0) return 0.0;
  int exponent = x.top() - 64;
  double leading = static_cast<double>(x.window(exponent));
  if (exponent % 2 != 0) {
    leading *= 2;
    --exponent;
  }
  const double estimate = std::sqrt(leading);  // in [2^31, 2^33), off by a few parts in 2^53
  const int scale = exponent / 2;
  int last_place = last_place_at(std::ilogb(estimate) + 1 + scale, format);
  const auto compare_with_halves = [&](std::int64_t halves) {
    return compare(x, product(exact_integer(halves, last_place - 1), exact_integer(halves, last_place - 1)));
  };
  const int shift = scale - last_place;
  auto k = static_cast<std::int64_t>(shift < -1000 ? 0.0 : std::floor(std::ldexp(estimate, shift)));
  for (;;) {
    while (compare_with_halves(2 * k) < 0) --k;
    while (compare_with_halves(2 * k + 2) >= 0) ++k;
    // Where the root lies next to a power of two the estimate may lie on its other side.
    if (k >= (std::int64_t{1} << format.precision)) {
      ++last_place;
      k /= 2;
    } else if (k < (std::int64_t{1} << (format.precision - 1)) && last_place > format.lowest_exponent) {
      --last_place;
      k *= 2;
    } else {
      break;
    }
  }
  const int half = compare_with_halves(2 * k + 1);
  if (half > 0 || (half == 0 && k % 2 != 0)) ++k;
  return composed(k, last_place, false, format);
}

}  // namespace isofold
