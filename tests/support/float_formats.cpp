#include "support/float_formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

namespace isofold_test {

namespace {

constexpr Format kFloat16{11, -14, 15, 16};
constexpr Format kBFloat16{8, -126, 127, 16};
constexpr Format kFloat32{24, -126, 127, 32};
constexpr Format kFloat64{53, -1022, 1023, 64};

std::uint64_t infinity_bits(const Format& format) {
  return static_cast<std::uint64_t>(format.max_exponent - format.min_exponent + 2) << (format.precision - 1);
}

std::uint64_t sign_bit(const Format& format) { return std::uint64_t{1} << (format.bits - 1); }

}  // namespace

const Format& format_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return kFloat16;
    case DataType::bfloat16:
      return kBFloat16;
    case DataType::float32:
      return kFloat32;
    case DataType::float64:
      return kFloat64;
    case DataType::none:
      break;
  }
  std::fprintf(stderr, "an absent array has no format\n");
  std::abort();
}

std::size_t size_of(DataType type) {
  return type == DataType::none ? 0 : static_cast<std::size_t>(format_of(type).bits) / 8;
}

const char* name_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return "float16";
    case DataType::bfloat16:
      return "bfloat16";
    case DataType::float32:
      return "float32";
    case DataType::float64:
      return "float64";
    case DataType::none:
      break;
  }
  return "none";
}

Parts parts_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto biased = static_cast<int>((bits >> 52) & 0x7ff);
  std::uint64_t significand = bits & ((std::uint64_t{1} << 52) - 1);
  if (biased != 0) significand |= std::uint64_t{1} << 52;
  if (significand == 0) return {0, 0};
  const int zeros = std::countr_zero(significand);
  const auto odd = static_cast<std::int64_t>(significand >> zeros);
  return {(bits >> 63) != 0 ? -odd : odd, std::max(biased, 1) - 1075 + zeros};
}

int bit_length(UInt128 x) {
  const auto high = static_cast<std::uint64_t>(x >> 64);
  return high != 0 ? 128 - std::countl_zero(high) : 64 - std::countl_zero(static_cast<std::uint64_t>(x));
}

std::uint64_t round_to_format(const Format& format, bool negative, UInt128 magnitude, int exponent,
                              bool sticky) {
  const int length = bit_length(magnitude);
  if (length == 0) return 0;
  const int top = length - 1 + exponent;
  int unit = std::max(top, format.min_exponent) - (format.precision - 1);  // exponent of the last place
  const int drop = unit - exponent;
  if (drop > 128) return 0;
  std::uint64_t significand = 0;
  if (drop <= 0) {
    if (sticky) {
      std::fprintf(stderr, "round_to_format: too few bits to round\n");
      std::abort();
    }
    significand = static_cast<std::uint64_t>(magnitude << -drop);
  } else {
    significand = drop == 128 ? 0 : static_cast<std::uint64_t>(magnitude >> drop);
    const UInt128 half = UInt128{1} << (drop - 1);
    const bool at_least_half = (magnitude & half) != 0;
    const bool more = sticky || (magnitude & (half - 1)) != 0;
    if (at_least_half && (more || (significand & 1) != 0)) ++significand;
  }
  if (significand == 0) return 0;
  // Adding the significand with its leading bit to the exponent field below carries by itself.
  const std::uint64_t field = unit + (format.precision - 1) - format.min_exponent;
  std::uint64_t bits = (field << (format.precision - 1)) + significand;
  bits = std::min(bits, infinity_bits(format));
  return negative ? bits | sign_bit(format) : bits;
}

std::uint64_t encode(DataType type, double x) {
  const Format& format = format_of(type);
  if (std::isnan(x)) return canonical_nan(type);
  if (std::isinf(x)) return infinity_bits(format) | (x < 0 ? sign_bit(format) : 0);
  const Parts parts = parts_of(x);
  return round_to_format(format, parts.significand < 0, static_cast<UInt128>(std::llabs(parts.significand)),
                         parts.exponent, false);
}

std::uint64_t spell(DataType type, double x) {
  return x == 0 && std::signbit(x) ? sign_bit(format_of(type)) : encode(type, x);
}

double decode(DataType type, std::uint64_t bits) {
  if (type == DataType::float64) return std::bit_cast<double>(bits);
  if (type == DataType::float32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  const Format& format = format_of(type);
  const bool negative = (bits & sign_bit(format)) != 0;
  const std::uint64_t magnitude = bits & (sign_bit(format) - 1);
  const std::uint64_t infinity = infinity_bits(format);
  double x = 0.0;
  if (magnitude > infinity) {
    return std::numeric_limits<double>::quiet_NaN();
  } else if (magnitude == infinity) {
    x = std::numeric_limits<double>::infinity();
  } else {
    const std::uint64_t hidden = std::uint64_t{1} << (format.precision - 1);
    const auto field = static_cast<int>(magnitude / hidden);
    const std::uint64_t significand = magnitude % hidden + (field != 0 ? hidden : 0);
    x = std::ldexp(static_cast<double>(significand),
                   std::max(field, 1) - 1 + format.min_exponent - format.precision + 1);
  }
  return negative ? -x : x;
}

std::uint64_t canonical_nan(DataType type) {
  const Format& format = format_of(type);
  return infinity_bits(format) | (std::uint64_t{1} << (format.precision - 2));
}

double largest_finite(DataType type) { return decode(type, infinity_bits(format_of(type)) - 1); }

double smallest_positive(DataType type) { return decode(type, 1); }

double step(DataType type, double x, std::int64_t steps) {
  const Format& format = format_of(type);
  const std::uint64_t bits = encode(type, x);
  const auto magnitude = static_cast<std::int64_t>(bits & (sign_bit(format) - 1));
  const auto last = static_cast<std::int64_t>(infinity_bits(format) - 1);
  const std::int64_t start = (bits & sign_bit(format)) != 0 ? -magnitude : magnitude;
  const auto place = static_cast<std::int64_t>(std::clamp<Int128>(Int128{start} + steps, -last, last));
  return place < 0 ? -decode(type, static_cast<std::uint64_t>(-place))
                   : decode(type, static_cast<std::uint64_t>(place));
}

std::uint64_t load_bits(const void* data, DataType type, std::int64_t index) {
  const std::size_t size = size_of(type);
  std::uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char*>(data) + static_cast<std::size_t>(index) * size, size);
  return bits;
}

void store_bits(void* data, DataType type, std::int64_t index, std::uint64_t bits) {
  const std::size_t size = size_of(type);
  std::memcpy(static_cast<char*>(data) + static_cast<std::size_t>(index) * size, &bits, size);
}

std::string hex(double x) {
  char text[40];
  std::snprintf(text, sizeof text, "%a", x);
  return text;
}

}  // namespace isofold_test
