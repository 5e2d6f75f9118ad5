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

// A real v > 0 rounded to the format, whatever it takes. `estimate` times 2^scale is v to a few parts in
// 2^53; compare_with(halves, e) is the sign of v - halves 2^e, exactly.
//
// With lsb the format's last place at v, find the integer k with k lsb <= v < (k + 1) lsb, then compare v
// with (2k + 1) (lsb / 2), the midpoint.
template <class Compare>
ISOFOLD_HOST_DEVICE double rounded_by_halves(double estimate, int scale, bool negative, Format format,
                                             Compare&& compare_with) {
  int last_place = last_place_at(std::ilogb(estimate) + 1 + scale, format);
  // The first k is off by a few at most. Far below the lowest subnormal the shift would leave the range of
  // ldexp's result; k is 0 there.
  const int shift = scale - last_place;
  auto k = static_cast<std::int64_t>(shift < -1000 ? 0.0 : std::floor(std::ldexp(estimate, shift)));
  for (;;) {
    while (compare_with(2 * k, last_place - 1) < 0) --k;
    while (compare_with(2 * k + 2, last_place - 1) >= 0) ++k;
    // Where v lies next to a power of two the estimate may lie on its other side.
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
  const int half = compare_with(2 * k + 1, last_place - 1);
  if (half > 0 || (half == 0 && k % 2 != 0)) ++k;
  return composed(k, last_place, negative, format);
}

// x >= 0: the midpoints' squares are compared with x.
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
  return rounded_by_halves(estimate, exponent / 2, false, format, [&](std::int64_t halves, int place) {
    return compare(x, product(exact_integer(halves, place), exact_integer(halves, place)));
  });
}

}  // namespace isofold
