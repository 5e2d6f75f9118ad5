// Numbers of bounded width held exactly: sign, 64-bit limbs, a power of two. Enough arithmetic to compare
// products, which is all that deciding a turn or a rounding takes. No allocation; host and device.
#pragma once

#include <cstdint>

#include "exact/double_double.hpp"
#include "exact/host_device.hpp"

namespace isofold {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

ISOFOLD_HOST_DEVICE inline int bit_length(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return 64 - __clzll(static_cast<long long>(x));
#else
  return x == 0 ? 0 : 64 - __builtin_clzll(x);
#endif
}

ISOFOLD_HOST_DEVICE inline int trailing_zeros(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return x == 0 ? 64 : __ffsll(static_cast<long long>(x)) - 1;
#else
  return x == 0 ? 64 : __builtin_ctzll(x);
#endif
}

ISOFOLD_HOST_DEVICE inline std::uint64_t bits_of(double x) {
  std::uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

// A finite double is (negative ? -1 : 1) * mantissa * 2^exponent, exponent in [-1074, 971].
struct DecodedDouble {
  bool negative;
  std::uint64_t mantissa;
  int exponent;
};

ISOFOLD_HOST_DEVICE inline DecodedDouble decode(double x) {
  const std::uint64_t bits = bits_of(x);
  const std::uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL;
  const int field = static_cast<int>((bits >> 52) & 0x7FF);
  const bool subnormal = field == 0;
  return {(bits >> 63) != 0, subnormal ? fraction : fraction | (1ULL << 52), (subnormal ? 1 : field) - 1075};
}

// (-1, 0 or 1) * (limb[0] + limb[1] 2^64 + ...) * 2^exponent. Normalized: the first and last limb are not
// zero.
template <int Capacity>
struct ExactNumber {
  int sign = 0;
  int exponent = 0;
  int size = 0;
  std::uint64_t limb[Capacity];

  // Position just above the highest set bit.
  [[nodiscard]] ISOFOLD_HOST_DEVICE int top() const {
    return exponent + 64 * (size - 1) + bit_length(limb[size - 1]);
  }

  // The 64 bits whose lowest has weight 2^position; bits that are not stored are zero.
  [[nodiscard]] ISOFOLD_HOST_DEVICE std::uint64_t window(int position) const {
    const int shift = position - exponent;
    const int index = shift >= 0 ? shift / 64 : -((63 - shift) / 64);
    const int offset = shift - 64 * index;
    const std::uint64_t low = index >= 0 && index < size ? limb[index] : 0;
    if (offset == 0) return low;
    const std::uint64_t high = index + 1 >= 0 && index + 1 < size ? limb[index + 1] : 0;
    return (low >> offset) | (high << (64 - offset));
  }

  ISOFOLD_OUT_OF_LINE void normalize() {
    while (size > 0 && limb[size - 1] == 0) --size;
    if (size == 0) {
      sign = 0;
      exponent = 0;
      return;
    }
    int zeros = 0;
    while (limb[zeros] == 0) ++zeros;
    if (zeros == 0) return;
    for (int i = zeros; i < size; ++i) limb[i - zeros] = limb[i];
    size -= zeros;
    exponent += 64 * zeros;
  }
};

ISOFOLD_HOST_DEVICE inline ExactNumber<1> exact_integer(std::int64_t value, int exponent = 0) {
  ExactNumber<1> result;
  if (value == 0) {
    result.limb[0] = 0;
    return result;
  }
  result.sign = value < 0 ? -1 : 1;
  result.exponent = exponent;
  result.size = 1;
  result.limb[0] = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  return result;
}

ISOFOLD_HOST_DEVICE inline ExactNumber<1> exact_double(double value) {
  const DecodedDouble d = decode(value);
  const auto mantissa = static_cast<std::int64_t>(d.mantissa);
  return exact_integer(d.negative ? -mantissa : mantissa, d.exponent);
}

// The pair's bits must span at most 126 places, which fact 1 of double_double.hpp gives.
ISOFOLD_OUT_OF_LINE inline ExactNumber<2> exact_pair(DoubleDouble value) {
  const DecodedDouble high = decode(value.high);
  const DecodedDouble low = decode(value.low);
  // Both mantissas lose their trailing zeros, so that the shift between them is as small as it can be.
  const int high_zeros = high.mantissa == 0 ? 0 : trailing_zeros(high.mantissa);
  const int low_zeros = low.mantissa == 0 ? 0 : trailing_zeros(low.mantissa);
  Int128 high_part = static_cast<Int128>(high.mantissa >> high_zeros);
  Int128 low_part = static_cast<Int128>(low.mantissa >> low_zeros);
  const int high_exponent = high.mantissa == 0 ? low.exponent + low_zeros : high.exponent + high_zeros;
  const int low_exponent = low.mantissa == 0 ? high_exponent : low.exponent + low_zeros;
  const int exponent = high_exponent < low_exponent ? high_exponent : low_exponent;
  high_part <<= high_exponent - exponent;
  low_part <<= low_exponent - exponent;
  const Int128 sum = (high.negative ? -high_part : high_part) + (low.negative ? -low_part : low_part);
  ExactNumber<2> result;
  result.sign = sum < 0 ? -1 : 1;
  const Uint128 magnitude = sum < 0 ? static_cast<Uint128>(-sum) : static_cast<Uint128>(sum);
  result.limb[0] = static_cast<std::uint64_t>(magnitude);
  result.limb[1] = static_cast<std::uint64_t>(magnitude >> 64);
  result.size = 2;
  result.exponent = exponent;
  result.normalize();
  return result;
}

template <int A, int B>
ISOFOLD_OUT_OF_LINE ExactNumber<A + B> product(const ExactNumber<A>& a, const ExactNumber<B>& b) {
  ExactNumber<A + B> result;
  if (a.sign == 0 || b.sign == 0) return result;
  result.sign = a.sign * b.sign;
  result.exponent = a.exponent + b.exponent;
  result.size = a.size + b.size;
  for (int i = 0; i < result.size; ++i) result.limb[i] = 0;
  for (int i = 0; i < a.size; ++i) {
    std::uint64_t carry = 0;
    for (int j = 0; j < b.size; ++j) {
      const Uint128 term = static_cast<Uint128>(a.limb[i]) * b.limb[j] + result.limb[i + j] + carry;
      result.limb[i + j] = static_cast<std::uint64_t>(term);
      carry = static_cast<std::uint64_t>(term >> 64);
    }
    result.limb[i + b.size] = carry;
  }
  result.normalize();
  return result;
}

template <int A, int B>
ISOFOLD_OUT_OF_LINE int compare_magnitudes(const ExactNumber<A>& a, const ExactNumber<B>& b) {
  if (a.size == 0 || b.size == 0) return (a.size != 0) - (b.size != 0);
  const int top = a.top();
  if (top != b.top()) return top > b.top() ? 1 : -1;
  const int bottom = a.exponent < b.exponent ? a.exponent : b.exponent;
  for (int position = top - 64; position > bottom - 64; position -= 64) {
    const std::uint64_t a_bits = a.window(position);
    const std::uint64_t b_bits = b.window(position);
    if (a_bits != b_bits) return a_bits > b_bits ? 1 : -1;
  }
  return 0;
}

// The sign of a - b.
template <int A, int B>
ISOFOLD_HOST_DEVICE int compare(const ExactNumber<A>& a, const ExactNumber<B>& b) {
  if (a.sign != b.sign) return a.sign > b.sign ? 1 : -1;
  return a.sign * compare_magnitudes(a, b);
}

}  // namespace isofold
