// Sums in twice the working precision with a proven error, which is zero wherever nothing was lost.
//
// A lane adds terms t_1 .. t_m to `sum` by two_sum, whose errors e_i are exact, and collects what is lost,
// x_i = RN(e_i + p_i) with p_i the error of the product behind t_i, in `lost`, and |x_i| in `spread`. Against
// the exact sum of terms, sum + lost is off by the roundings of e_i + p_i, at most u |x_i| each, and of the
// additions to `lost`, at most (m - 1) u spread. The first term costs nothing: it is added to zeros. So 3 u
// (m - 1) spread covers all, spread's own roundings included, for m up to 2^40; for terms without p_i, m - 2
// will do. (Ogita, Rump and Oishi 2005 bound the same by the sum of |t_i|, which is never zero.)
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exact/double_double.hpp"
#include "exact/format.hpp"
#include "exact/host_device.hpp"
#include "exact/rounded_quotient.hpp"

namespace isofold {

struct CompensatedSum {
  double high = 0.0;
  double low = 0.0;
  double error = 0.0;  // |exact sum - (high + low)| <= error; infinite or NaN when nothing is known
};

// The error of a lane whose sums took `terms` terms.
ISOFOLD_HOST_DEVICE inline double lane_error(double spread, std::int64_t terms, bool exact_terms) {
  const std::int64_t roundings = terms - (exact_terms ? 2 : 1);
  return roundings > 0 ? spread * (3 * kUnitRoundoff * static_cast<double>(roundings)) : 0.0 * spread;
}

// What is lost in adding low parts is known exactly, and counts as error.
ISOFOLD_HOST_DEVICE inline CompensatedSum operator+(const CompensatedSum& a, const CompensatedSum& b) {
  const TwoTerms high = two_sum(a.high, b.high);
  const TwoTerms once = two_sum(b.low, high.low);
  const TwoTerms twice = two_sum(a.low, once.high);
  // Three roundings of numbers that are not negative.
  const double error = (a.error + b.error) + (std::fabs(once.low) + std::fabs(twice.low));
  return {high.high, twice.high, error * (1 + 0x1p-50)};
}

// One more term, known exactly.
ISOFOLD_HOST_DEVICE inline CompensatedSum operator+(const CompensatedSum& a, double term) {
  return a + CompensatedSum{term, 0.0, 0.0};
}

// high + low, high being the double nearest to it, rounded once to the format. Rounding to odd first (Boldo
// and Melquiond 2008) keeps the second rounding right.
ISOFOLD_HOST_DEVICE inline double round_pair(double high, double low, Format format) {
  if (format.precision == 53) return high + 0.0;
  const std::uint64_t bits = bits_of(high);
  if (low != 0.0 && (bits & 1) == 0) {
    const std::uint64_t odd = (low > 0) == (high > 0) ? bits + 1 : bits - 1;
    __builtin_memcpy(&high, &odd, sizeof high);
  }
  return round_to(high, format) + 0.0;
}

// The one rounding that value +- slack leaves possible, for a correction below an ulp or so of value; slack
// covers the roundings of the correction and of its sum with slack.
ISOFOLD_HOST_DEVICE inline RoundedValue rounded_between(double value, double correction, double slack,
                                                        Format format) {
  double lower = value + (correction - slack);
  double upper = value + (correction + slack);
  if (format.precision < 53) {
    // Rounding to double first may land on a midpoint of the narrower format: step outwards before rounding
    // again.
    lower = round_to(lower - 2 * kUnitRoundoff * std::fabs(lower), format);
    upper = round_to(upper + 2 * kUnitRoundoff * std::fabs(upper), format);
  }
  return {lower + 0.0, lower == upper};
}

// The sum rounded to the format, where its error leaves only one rounding; `more` is error beside its own.
ISOFOLD_HOST_DEVICE inline RoundedValue round_compensated(const CompensatedSum& sum, Format format,
                                                          double more = 0.0) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  const TwoTerms total = two_sum(sum.high, sum.low);
  const double error = sum.error + more;
  if (!(std::fabs(total.high) <= kLargest && error <= kLargest)) return {0.0, false};
  if (error == 0.0) return {round_pair(total.high, total.low, format), true};
  // low - slack is off by u (|low| + slack); 2 u of both is in it.
  const double slack = error * (1 + 0x1p-40) + 4 * kUnitRoundoff * std::fabs(total.low);
  return rounded_between(total.high, total.low, slack, format);
}

// Its square root. r = RN(sqrt(high)) and high - r^2 is exact (fma), away from the ends of the exponent
// range. With x = high - r^2 + low, |x| < 4 u r^2, the root is r + x / 2r, short of at most x^2 / 8 r^3 < 2
// u^2 r; the roundings of x, of the quotient and of correction - slack are below 2, 2 and 4 u^2 r. An error
// of the sum enters by half of itself over r.
ISOFOLD_HOST_DEVICE inline RoundedValue round_root(const CompensatedSum& sum, Format format,
                                                   double more = 0.0) {
  const TwoTerms total = two_sum(sum.high, sum.low);
  const double error = sum.error + more;
  if (total.high == 0.0 && error == 0.0) return {0.0, true};
  const bool usual = total.high > 0x1p-900 && total.high < 0x1p900 && error <= total.high * 0x1p-40;
  if (!usual) return {0.0, false};
  const double root = std::sqrt(total.high);
  const double rest = std::fma(-root, root, total.high) + total.low;
  const double slack = 32 * kUnitRoundoff * kUnitRoundoff * root + error / root;
  return rounded_between(root, rest / (2 * root), slack, format);
}

}  // namespace isofold
