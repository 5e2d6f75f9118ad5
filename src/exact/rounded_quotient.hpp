// A quotient of exact sums, rounded once. Doubles with a proven error decide nearly always; rounding
// midpoints and what is too close to one are decided by comparing products of exact numbers.
#pragma once

#include <cmath>

#include "exact/certified_sum.hpp"
#include "exact/exact_number.hpp"
#include "exact/format.hpp"
#include "exact/host_device.hpp"
#include "exact/rounded_number.hpp"

namespace isofold {

struct RoundedValue {
  double value;
  bool decided;
};

// numerator / denominator, denominator > 0, where the certified error leaves only one rounding; else
// undecided.
//
// q = RN(N.high / D.high) and r = N.high - q D.high is exact (fma), as long as nothing comes near the ends of
// the exponent range. The quotient is then q + (r + N.low - q D.low) / D to a relative error of a few u^2:
// the correction c is itself at most a few u |q| and is computed in a handful of operations, each off by u
// relative. 64 u^2 |q| covers them; the errors of N and D enter doubled to cover the rounding of the bound
// and, D's being at most D / 2^10, the terms of second order. A D that is known no better bounds nothing.
ISOFOLD_HOST_DEVICE inline RoundedValue certified_quotient(const CertifiedSum& numerator,
                                                           const CertifiedSum& denominator, Format format) {
  const double n = numerator.value.high;
  const double d = denominator.value.high;
  if (n == 0.0 && numerator.value.low == 0.0 && numerator.exact()) return {0.0, true};
  const double q = n / d;
  const double n_size = std::fabs(n);
  const double q_size = std::fabs(q);
  const bool in_range = n_size > 0x1p-900 && n_size < 0x1p900 && d > 0x1p-900 && d < 0x1p900 &&
                        q_size > 0x1p-900 && q_size < 0x1p900 && denominator.error <= d * 0x1p-10;
  if (!in_range) return {0.0, false};
  const double remainder = std::fma(-q, d, n) + numerator.value.low - q * denominator.value.low;
  const double correction = remainder / d;
  const double slack =
      64 * kUnitRoundoff * kUnitRoundoff * q_size + 2 * (numerator.error + q_size * denominator.error) / d;
  double lower = q + (correction - slack);
  double upper = q + (correction + slack);
  if (format.precision < 53) {
    // Rounding to double first may land on a midpoint of the narrower format: step outwards before rounding
    // again.
    lower -= 2 * kUnitRoundoff * std::fabs(lower);
    upper += 2 * kUnitRoundoff * std::fabs(upper);
    lower = round_to(lower, format);
    upper = round_to(upper, format);
  }
  return {lower + 0.0, lower == upper};
}

// A double near the magnitude of x, and the power of two it must be multiplied with.
template <int Capacity>
ISOFOLD_HOST_DEVICE double leading_bits(const ExactNumber<Capacity>& x, int* exponent) {
  *exponent = x.top() - 64;
  return static_cast<double>(x.window(*exponent));
}

// numerator / denominator rounded to the format, whatever it takes. denominator > 0. Midpoints times the
// denominator are compared with the numerator.
template <int A, int B>
ISOFOLD_OUT_OF_LINE double exact_quotient(ExactNumber<A> numerator, const ExactNumber<B>& denominator,
                                          Format format) {
  if (numerator.sign == 0) return 0.0;
  const bool negative = numerator.sign < 0;
  numerator.sign = 1;
  int n_exponent;
  int d_exponent;
  const double estimate =
      leading_bits(numerator, &n_exponent) / leading_bits(denominator, &d_exponent);  // in (1/2, 2)
  const auto compare_with = [&](std::int64_t halves, int place) {
    return compare(numerator, product(exact_integer(halves, place), denominator));
  };
  return rounded_by_halves(estimate, n_exponent - d_exponent, negative, format, compare_with);
}

// The whole ladder: certified doubles, then 128-bit integers where the sums are exact, then `long_way()`,
// which returns the rounded quotient from long accumulators. denominator > 0.
template <class LongWay>
ISOFOLD_HOST_DEVICE double rounded_quotient(const CertifiedSum& numerator, const CertifiedSum& denominator,
                                            Format format, LongWay&& long_way) {
  const RoundedValue fast = certified_quotient(numerator, denominator, format);
  if (fast.decided) return fast.value;
  if (numerator.exact() && denominator.exact()) {
    return exact_quotient(exact_pair(numerator.value), exact_pair(denominator.value), format);
  }
  return long_way();
}

}  // namespace isofold
