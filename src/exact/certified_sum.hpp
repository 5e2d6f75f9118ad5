// Sums of doubles, or of products of doubles, as a pair with a proven error; zero error whenever the terms
// are multiples of one unit that is not too small, which is what real data nearly always are
// (double_double.hpp, fact 1).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exact/double_double.hpp"
#include "exact/exact_number.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// The largest power of two of which all doubles seen are multiples, or a smaller one: the lowest exponent
// among them plus the zeros that all their mantissas end in.
struct UnitTracker {
  double smallest = std::numeric_limits<double>::infinity();  // nonzero magnitude
  std::uint64_t mantissas = 0;                                // or-ed

  ISOFOLD_HOST_DEVICE void see(double value) {
    const double magnitude = value < 0 ? -value : value;
    const double candidate = magnitude == 0 ? std::numeric_limits<double>::infinity() : magnitude;
    smallest = candidate < smallest ? candidate : smallest;
    mantissas |= bits_of(value);
  }

  ISOFOLD_HOST_DEVICE void merge(const UnitTracker& other) {
    smallest = other.smallest < smallest ? other.smallest : smallest;
    mantissas |= other.mantissas;
  }

  // The unit's exponent; kNone when every value was zero.
  static constexpr int kNone = 1 << 20;
  [[nodiscard]] ISOFOLD_HOST_DEVICE int exponent() const {
    if (smallest == std::numeric_limits<double>::infinity()) return kNone;
    return decode(smallest).exponent + trailing_zeros((mantissas & 0xFFFFFFFFFFFFFULL) | (1ULL << 52));
  }
};

// e with |x| < 2^e, for finite x; a very low number for zero.
ISOFOLD_HOST_DEVICE inline int magnitude_exponent(double x) {
  const DecodedDouble d = decode(x);
  return d.mantissa == 0 ? -UnitTracker::kNone : d.exponent + bit_length(d.mantissa);
}

// Whether sums of multiples of 2^unit, of magnitudes at most about `magnitude` in all, are exact as pairs.
// One bit is spared for the rounding of `magnitude` itself; products whose low parts could underflow do not
// qualify.
ISOFOLD_HOST_DEVICE inline bool exact_as_pair(double magnitude, int unit) {
  return magnitude <= std::numeric_limits<double>::max() && magnitude_exponent(magnitude) + 1 <= unit + 100 &&
         unit >= -1074;
}

// The same for sums in plain doubles.
ISOFOLD_HOST_DEVICE inline bool exact_as_double(double magnitude, int unit) {
  return magnitude <= std::numeric_limits<double>::max() && magnitude_exponent(magnitude) + 1 <= unit + 53 &&
         unit >= -1074;
}

struct CertifiedSum {
  DoubleDouble value;
  double error = 0.0;  // |exact sum - value| <= error; infinite or NaN when nothing is known
  [[nodiscard]] ISOFOLD_HOST_DEVICE bool exact() const { return error == 0.0; }
};

// Adds terms one by one; several builders may be merged.
class SumBuilder {
 public:
  ISOFOLD_HOST_DEVICE void add(double term) {
    accumulate(term, 0.0);
    magnitude_ += std::fabs(term);
    unit_.see(term);
    ++terms_;
  }

  ISOFOLD_HOST_DEVICE void add_product(double a, double b) {
    const TwoTerms product = two_product(a, b);
    accumulate(product.high, product.low);
    magnitude_ += std::fabs(product.high);
    unit_.see(a);
    second_unit_.see(b);
    products_ = true;
    ++terms_;
  }

  ISOFOLD_HOST_DEVICE void merge(const SumBuilder& other) {
    sum_ = sum_ + other.sum_;
    magnitude_ += other.magnitude_;
    unit_.merge(other.unit_);
    second_unit_.merge(other.second_unit_);
    products_ = products_ || other.products_;
    terms_ += other.terms_;
  }

  [[nodiscard]] ISOFOLD_HOST_DEVICE CertifiedSum finish() const {
    const int unit = products_ ? unit_.exponent() + second_unit_.exponent() : unit_.exponent();
    if (exact_as_pair(magnitude_, unit)) return {sum_, 0.0};
    // Fact 2, with 16 u^2 for the 2 to 3 operations a term takes, and the products that may have underflowed.
    const double terms = static_cast<double>(terms_) + 64.0;
    const double underflow = products_ ? 0x1p-1070 * terms : 0.0;
    return {sum_, terms * (16 * kUnitRoundoff * kUnitRoundoff) * magnitude_ + underflow + 0x1p-1070};
  }

 private:
  ISOFOLD_HOST_DEVICE void accumulate(double high, double low) {
    const TwoTerms sum = two_sum(sum_.high, high);
    const TwoTerms renormalized = quick_two_sum(sum.high, sum.low + (sum_.low + low));
    sum_ = {renormalized.high, renormalized.low};
  }

  DoubleDouble sum_;
  double magnitude_ = 0.0;
  UnitTracker unit_;
  UnitTracker second_unit_;
  bool products_ = false;
  std::int64_t terms_ = 0;
};

}  // namespace isofold
