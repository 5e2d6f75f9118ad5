// A fixed-point number wide enough for every sum that can occur (Kulisch): additions never round and never
// overflow.
#pragma once

#include <cstdint>

#include "exact/exact_number.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// Two's complement, lowest bit 2^LowestExponent.
template <int Limbs, int LowestExponent>
class LongAccumulator {
 public:
  ISOFOLD_HOST_DEVICE LongAccumulator() : limb_{} {}

  ISOFOLD_HOST_DEVICE void add(double value) {
    const DecodedDouble d = decode(value);
    add_scaled(d.mantissa, d.exponent, d.negative);
  }

  ISOFOLD_HOST_DEVICE void add_product(double a, double b) {
    const DecodedDouble x = decode(a);
    const DecodedDouble y = decode(b);
    add_scaled(static_cast<Uint128>(x.mantissa) * y.mantissa, x.exponent + y.exponent,
               x.negative != y.negative);
  }

  ISOFOLD_HOST_DEVICE LongAccumulator& operator+=(const LongAccumulator& other) {
    std::uint64_t carry = 0;
    for (int i = 0; i < Limbs; ++i) carry = add_with_carry(i, other.limb_[i], carry);
    return *this;
  }

  ISOFOLD_HOST_DEVICE LongAccumulator& operator-=(const LongAccumulator& other) {
    std::uint64_t carry = 1;
    for (int i = 0; i < Limbs; ++i) carry = add_with_carry(i, ~other.limb_[i], carry);
    return *this;
  }

  [[nodiscard]] ISOFOLD_HOST_DEVICE ExactNumber<Limbs> value() const {
    ExactNumber<Limbs> result;
    const bool negative = (limb_[Limbs - 1] >> 63) != 0;
    std::uint64_t carry = negative ? 1 : 0;
    for (int i = 0; i < Limbs; ++i) {
      const std::uint64_t raw = negative ? ~limb_[i] : limb_[i];
      result.limb[i] = raw + carry;
      carry = result.limb[i] < carry ? 1 : 0;
    }
    result.sign = negative ? -1 : 1;
    result.exponent = LowestExponent;
    result.size = Limbs;
    result.normalize();
    return result;
  }

 private:
  // exponent >= LowestExponent, and the number fits with room to spare: callers choose the width so.
  ISOFOLD_HOST_DEVICE void add_scaled(Uint128 magnitude, int exponent, bool negative) {
    if (magnitude == 0) return;
    const int position = exponent - LowestExponent;
    const int index = position / 64;
    const int offset = position % 64;
    const auto low = static_cast<std::uint64_t>(magnitude);
    const auto high = static_cast<std::uint64_t>(magnitude >> 64);
    const std::uint64_t parts[3] = {low << offset,
                                    offset == 0 ? high : (high << offset) | (low >> (64 - offset)),
                                    offset == 0 ? 0 : high >> (64 - offset)};
    const std::uint64_t flip = negative ? ~0ULL : 0ULL;
    std::uint64_t carry = negative ? 1 : 0;
    for (int i = 0; i < 3 && index + i < Limbs; ++i)
      carry = add_with_carry(index + i, parts[i] ^ flip, carry);
    // Above the parts the addend is all zeros or all ones: stop once nothing can change.
    for (int i = index + 3; i < Limbs && (carry != 0) != negative; ++i)
      carry = add_with_carry(i, flip, carry);
  }

  ISOFOLD_HOST_DEVICE std::uint64_t add_with_carry(int index, std::uint64_t addend, std::uint64_t carry) {
    const Uint128 sum = static_cast<Uint128>(limb_[index]) + addend + carry;
    limb_[index] = static_cast<std::uint64_t>(sum);
    return static_cast<std::uint64_t>(sum >> 64);
  }

  std::uint64_t limb_[Limbs];
};

// Sums of up to 2^40 doubles: 2^-1074 .. 2^1101.
using SumAccumulator = LongAccumulator<34, -1074>;
// Sums of up to 2^40 products of doubles: 2^-2148 .. 2^2139.
using ProductAccumulator = LongAccumulator<67, -2148>;

}  // namespace isofold
