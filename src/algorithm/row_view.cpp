#include "algorithm/row_view.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isofold {
namespace {

double half_to_double(std::uint16_t bits) {
  const int field = (bits >> 10) & 0x1F;
  const int fraction = bits & 0x3FF;
  double magnitude;
  if (field == 0x1F) {
    magnitude =
        fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (field == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(fraction + 1024, field - 25);
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

double bfloat16_to_double(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  __builtin_memcpy(&value, &wide, sizeof value);
  return value;
}

// For values the type holds exactly.
std::uint16_t double_to_half(double value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7E00;
  if (std::isinf(value)) return sign | 0x7C00;
  if (magnitude < 0x1p-14) return sign | static_cast<std::uint16_t>(std::ldexp(magnitude, 24));
  const int exponent = std::ilogb(magnitude);
  const auto fraction = static_cast<std::uint16_t>(std::ldexp(magnitude, 10 - exponent) - 1024);
  return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

std::uint16_t double_to_bfloat16(double value) {
  if (std::isnan(value)) return 0x7FC0;
  const auto narrow = static_cast<float>(value);
  std::uint32_t bits;
  __builtin_memcpy(&bits, &narrow, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

// A NaN result is the canonical quiet one on every path.
double canonical(double value) {
  return value == value ? value + 0.0 : std::numeric_limits<double>::quiet_NaN();
}

// Calls visit(typed pointer, conversion from the stored type to double).
template <class Visit>
void visit_input(ConstArray array, Visit&& visit) {
  switch (array.type) {
    case DataType::float16:
      return visit(static_cast<const Float16*>(array.data), [](Float16 x) { return half_to_double(x.bits); });
    case DataType::bfloat16:
      return visit(static_cast<const BFloat16*>(array.data),
                   [](BFloat16 x) { return bfloat16_to_double(x.bits); });
    case DataType::float32:
      return visit(static_cast<const float*>(array.data), [](float x) { return static_cast<double>(x); });
    case DataType::float64:
      return visit(static_cast<const double*>(array.data), [](double x) { return x; });
    case DataType::none:
      return;
  }
}

template <class Visit>
void visit_output(MutableArray array, Visit&& visit) {
  switch (array.type) {
    case DataType::float16:
      return visit(static_cast<Float16*>(array.data), [](double x) { return Float16{double_to_half(x)}; });
    case DataType::bfloat16:
      return visit(static_cast<BFloat16*>(array.data),
                   [](double x) { return BFloat16{double_to_bfloat16(x)}; });
    case DataType::float32:
      return visit(static_cast<float*>(array.data), [](double x) { return static_cast<float>(x); });
    case DataType::float64:
      return visit(static_cast<double*>(array.data), [](double x) { return x; });
    case DataType::none:
      return;
  }
}

}  // namespace

Format format_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return kFloat16;
    case DataType::bfloat16:
      return kBFloat16;
    case DataType::float32:
      return kFloat32;
    default:
      return kFloat64;
  }
}

void load(ConstArray array, std::int64_t first, std::int64_t count, double* out) {
  visit_input(array, [&](const auto* data, auto convert) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = convert(data[first + i]);
  });
}

void store(MutableArray array, std::int64_t first, std::int64_t count, const double* values) {
  visit_output(array, [&](auto* data, auto convert) {
    for (std::int64_t i = 0; i < count; ++i) data[first + i] = convert(canonical(values[i]));
  });
}

void store_constant(MutableArray array, std::int64_t first, std::int64_t count, double value) {
  visit_output(
      array, [&](auto* data, auto convert) { std::fill_n(data + first, count, convert(canonical(value))); });
}

}  // namespace isofold
