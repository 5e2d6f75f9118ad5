// Exact sums of products of doubles, as digits of 32 bits in words of 64: a term is added to a few digits
// without carrying, and accumulators are added digit by digit, in any order (Neal 2015, 'Fast exact summation
// using small and large superaccumulators', the small one, widened to products).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exact/exact_number.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// Digit 0 has weight 2^kLowestDigit: products of doubles are multiples of 2^-2148, and 2^60 of the largest
// stay below the last digit.
inline constexpr int kDigits = 136;
inline constexpr int kLowestDigit = -2176;

// Calls add(digit, value), |value| < 2^32, for the digits of a b. Both are finite.
template <class Add>
ISOFOLD_HOST_DEVICE void split_product(double a, double b, Add add) {
  const DecodedDouble x = decode(a);
  const DecodedDouble y = decode(b);
  Uint128 rest = static_cast<Uint128>(x.mantissa) * y.mantissa;
  if (rest == 0) return;
  const bool negative = x.negative != y.negative;
  const int position = x.exponent + y.exponent - kLowestDigit;
  const int offset = position % 32;
  int index = position / 32;
  const auto put = [&](std::uint64_t digit) {
    const auto value = static_cast<std::int64_t>(digit & 0xFFFFFFFFU);
    add(index++, negative ? -value : value);
  };
  put(static_cast<std::uint64_t>(rest) << offset);
  for (rest >>= 32 - offset; rest != 0; rest >>= 32) put(static_cast<std::uint64_t>(rest));
}

// The infinities and NaNs among the terms, which no sum of digits can hold.
struct SpecialTerms {
  bool nan = false;
  bool positive = false;
  bool negative = false;

  ISOFOLD_HOST_DEVICE void see(double term) {
    if (term != term) {
      nan = true;
    } else if (term > 0) {
      positive = true;
    } else {
      negative = true;
    }
  }
  ISOFOLD_HOST_DEVICE void merge(const SpecialTerms& other) {
    nan = nan || other.nan;
    positive = positive || other.positive;
    negative = negative || other.negative;
  }
  [[nodiscard]] ISOFOLD_HOST_DEVICE bool any() const { return nan || positive || negative; }
  [[nodiscard]] ISOFOLD_HOST_DEVICE double sum() const {
    if (nan || (positive && negative)) return std::numeric_limits<double>::quiet_NaN();
    return positive ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity();
  }
};

ISOFOLD_HOST_DEVICE inline bool is_finite(double x) {
  return std::fabs(x) <= std::numeric_limits<double>::max();
}

// Brings every digit but the last into [0, 2^32); the last keeps the sign.
ISOFOLD_OUT_OF_LINE inline void carry_digits(std::int64_t* digits) {
  std::int64_t carry = 0;
  for (int i = 0; i < kDigits; ++i) {
    const std::int64_t digit = digits[i] + carry;
    carry = i + 1 < kDigits ? digit >> 32 : 0;
    digits[i] = digit - (carry << 32);
  }
}

// The number that carried digits are.
ISOFOLD_OUT_OF_LINE inline ExactNumber<kDigits / 2> number_of_digits(const std::int64_t* digits) {
  ExactNumber<kDigits / 2> result;
  const bool negative = digits[kDigits - 1] < 0;
  std::uint64_t carry = negative ? 1 : 0;
  for (int i = 0; i < kDigits / 2; ++i) {
    const auto raw = (static_cast<std::uint64_t>(digits[2 * i + 1]) << 32) |
                     (static_cast<std::uint64_t>(digits[2 * i]) & 0xFFFFFFFFU);
    const std::uint64_t limb = negative ? ~raw : raw;
    result.limb[i] = limb + carry;
    carry = result.limb[i] < carry ? 1 : 0;
  }
  result.sign = negative ? -1 : 1;
  result.exponent = kLowestDigit;
  result.size = kDigits / 2;
  result.normalize();
  return result;
}

// On the host, with the carries that keep the words from overflowing.
class DigitAccumulator {
 public:
  void add_product(double a, double b) {
    if (!(is_finite(a) && is_finite(b))) {
      special_.see(a * b);
      return;
    }
    if (++pending_ == kMostPending) settle();
    split_product(a, b, [&](int index, std::int64_t value) { digits_[index] += value; });
  }

  DigitAccumulator& operator+=(DigitAccumulator other) {
    settle();
    other.settle();
    special_.merge(other.special_);
    for (int i = 0; i < kDigits; ++i) digits_[i] += other.digits_[i];
    pending_ = 2;
    return *this;
  }

  [[nodiscard]] const SpecialTerms& special() const { return special_; }
  [[nodiscard]] ExactNumber<kDigits / 2> value() {
    settle();
    return number_of_digits(digits_);
  }

 private:
  static constexpr std::int64_t kMostPending = std::int64_t{1} << 30;

  void settle() {
    carry_digits(digits_);
    pending_ = 0;
  }

  std::int64_t digits_[kDigits] = {};
  std::int64_t pending_ = 0;
  SpecialTerms special_;
};

}  // namespace isofold
