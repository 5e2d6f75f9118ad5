// The floating-point formats a result can be rounded to. Values of every format are held in doubles, exactly.
#pragma once

#include <cmath>
#include <limits>

#include "exact/host_device.hpp"

namespace isofold {

struct Format {
  int precision;        // bits of the significand
  int lowest_exponent;  // exponent of the smallest subnormal
  int overflow;         // magnitudes that round to 2^overflow or more become infinite
};

inline constexpr Format kFloat16{11, -24, 16};
inline constexpr Format kBFloat16{8, -133, 128};
inline constexpr Format kFloat32{24, -149, 128};
inline constexpr Format kFloat64{53, -1074, 1024};

// value to nearest, ties to even.
ISOFOLD_HOST_DEVICE inline double round_to(double value, Format format) {
  if (format.precision == 53) return value;
  if (format.precision == 24) return static_cast<double>(static_cast<float>(value));
  if (value == 0.0 || !(std::fabs(value) <= std::numeric_limits<double>::max())) return value;
  const int natural = std::ilogb(value) - format.precision + 1;
  const int exponent = natural > format.lowest_exponent ? natural : format.lowest_exponent;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(value, -exponent)), exponent);
  if (std::fabs(rounded) >= std::ldexp(1.0, format.overflow)) {
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  }
  return rounded;
}

}  // namespace isofold
