// Quotients as pairs of doubles with a proven error, and their one rounding to float32 or float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exact/certified_sum.hpp"
#include "exact/rounded_quotient.hpp"

namespace isofold::cuda {

__host__ __device__ inline Format gradient_format(bool to_float32) {
  if (to_float32) return kFloat32;
  return kFloat64;
}

// |real value - (high + low)| <= error. A NaN `high` stands for a NaN, with no error.
struct Quotient {
  double high;
  double low;
  double error;
};

// n / d, d > 0.
//
// With c = RN(1 / d) and q = RN(n c), q is within 3 u of n / d. The rest r = n - q d is below 3 u |n|, and
// fma gives it to 3 u^2 |n|. With n.low and q d.low, each at most u |n| and the latter off by u^2 |n|, three
// sums of up to 5 u |n| err by 9 u^2 |n|; times c, off by 2 u, that adds 10 u^2. In all 23 u^2 |q|, and as
// much again is left for what rounding high + low -+ error does: 64 u^2 |q| covers both. The errors of n and
// d enter doubled, for the rounding of the bound and, d's being at most d / 2^10, for the terms of second
// order.
__device__ inline Quotient quotient_of(const CertifiedSum& n, const CertifiedSum& d) {
  if (n.value.high == 0.0 && n.value.low == 0.0 && n.exact()) return {0.0, 0.0, 0.0};
  const double inverse = 1.0 / d.value.high;
  const double q = n.value.high * inverse;
  const double size = fabs(q);
  const bool in_range = fabs(n.value.high) > 0x1p-900 && fabs(n.value.high) < 0x1p900 &&
                        d.value.high > 0x1p-900 && d.value.high < 0x1p900 && size > 0x1p-900 &&
                        size < 0x1p900 && d.error <= d.value.high * 0x1p-10;
  if (!in_range) return {0.0, 0.0, std::numeric_limits<double>::infinity()};
  const double rest = fma(-q, d.value.high, n.value.high) + n.value.low - q * d.value.low;
  double error = 64 * kUnitRoundoff * kUnitRoundoff * size;
  if (!(n.exact() && d.exact())) error += 2 * (n.error + size * d.error) * inverse;
  return {q, rest * inverse, error};
}

// The two roundings that the error leaves: of high + low -+ error.
struct Roundings {
  double lower;
  double upper;
  [[nodiscard]] __device__ bool decided() const { return lower == upper; }
};

__device__ inline Roundings roundings(const Quotient& q, bool to_float32) {
  double lower = q.high + (q.low - q.error);
  double upper = q.high + (q.low + q.error);
  if (to_float32) {
    // Rounding to double first may land on a midpoint of float32: a step outwards before rounding again.
    lower = static_cast<double>(static_cast<float>(lower - 2 * kUnitRoundoff * fabs(lower)));
    upper = static_cast<double>(static_cast<float>(upper + 2 * kUnitRoundoff * fabs(upper)));
  }
  return {lower, upper};
}

// Whether a and b follow each other among the numbers of the format and have one sign.
__device__ inline bool neighbours(double a, double b, bool to_float32) {
  const long long apart = to_float32 ? static_cast<long long>(__float_as_int(static_cast<float>(b))) -
                                           __float_as_int(static_cast<float>(a))
                                     : __double_as_longlong(b) - __double_as_longlong(a);
  return apart == 1 || apart == -1;
}

// n / d rounded where n is a pair and d a double, both exact, in the range of quotient_of, and the quotient
// lies between two neighbours, next to the midpoint m + extra of them: the sign of n - (m + extra) d decides.
// m d = p + e exactly. n.high - p is exact, both being within a few ulps of n. What is summed then is below
// 2^-45 n and made of multiples of 2^-108 n (n.low of 2^-100 n, being exact; e and extra d of what two
// 53-bit numbers multiply to), so the sum is exact as a pair (double_double.hpp, fact 1).
struct TieBreak {
  double value;
  bool decided;
};
__device__ inline TieBreak break_tie(const DoubleDouble& n, double d, const Roundings& between,
                                     bool to_float32) {
  if (!neighbours(between.lower, between.upper, to_float32)) return {0.0, false};
  const double m = to_float32 ? 0.5 * (between.lower + between.upper) : between.lower;
  const double extra = to_float32 ? 0.0 : 0.5 * (between.upper - between.lower);
  if (!(fabs(m) < 0x1p900)) return {0.0, false};
  const TwoTerms product = two_product(m, d);
  DoubleDouble rest = DoubleDouble{n.high - product.high, 0.0} + n.low;
  rest = rest + -product.low;
  rest = rest + -(extra * d);
  if (rest.high > 0) return {between.upper, true};
  if (rest.high < 0) return {between.lower, true};
  const long long bits =
      to_float32 ? __float_as_int(static_cast<float>(between.lower)) : __double_as_longlong(between.lower);
  return {bits % 2 == 0 ? between.lower : between.upper, true};
}

// n / d rounded; `slow()` decides what these doubles cannot.
template <class Slow>
__device__ double rounded_gradient_quotient(const CertifiedSum& n, const CertifiedSum& d, bool to_float32,
                                            Slow slow) {
  const Quotient quotient = quotient_of(n, d);
  const Roundings found = roundings(quotient, to_float32);
  if (found.decided()) return found.lower + 0.0;
  if (n.exact() && d.exact() && d.value.low == 0.0 && quotient.high != 0.0) {
    const TieBreak tie = break_tie(n.value, d.value.high, found, to_float32);
    if (tie.decided) return tie.value + 0.0;
  }
  return slow();
}

// w times a quotient, w > 0, rounded where the error leaves one rounding.
//
// p = RN(w high), whose own error is exact (fma) while |p| is far from the ends of the exponent range. w low
// is below 6 u |p| (low corrects high by 5 u at most) and is off by u of that, as are the sums that follow,
// of up to 7 u |p|: 64 u^2 |p| covers them all.
__device__ inline RoundedValue scaled_quotient(double w, const Quotient& q, bool to_float32) {
  if (q.high != q.high || (q.high == 0.0 && q.error == 0.0)) return {q.high, true};
  const double p = w * q.high;
  const double size = fabs(p);
  if (!(size > 0x1p-900 && size < 0x1p900 && w > 0x1p-900 && w < 0x1p900)) return {0.0, false};
  const double low = fma(w, q.high, -p) + w * q.low;
  const double error = 2 * (w * q.error) + 64 * kUnitRoundoff * kUnitRoundoff * size;
  const Roundings found = roundings({p, low, error}, to_float32);
  return {found.lower + 0.0, found.decided()};
}

}  // namespace isofold::cuda
