// Streaming passes over arrays of doubles; every vector width computes the same bits.
#pragma once

#include <cstdint>
#include <limits>

#include "exact/certified_sum.hpp"

namespace isofold::cpu {

struct Statistics {
  bool finite = true;
  double magnitude = 0.0;  // sum of magnitudes
  double lowest = std::numeric_limits<double>::infinity();
  UnitTracker unit;
};
[[nodiscard]] Statistics statistics(const double* values, std::int64_t count);

void multiply(const double* a, const double* b, std::int64_t count, double* out);

// out[k]: the sum of the terms before k, k = 0 .. count, in plain doubles, a chain of at most count additions.
void prefix_sums(const double* terms, std::int64_t count, double* out);

// Bit i, i < count <= 32: values[i - 1] < values[i]. Only such a point can be a vertex, whatever the weights.
[[nodiscard]] std::uint32_t rising_bits(const double* values, std::int64_t count);

// Bit i: no window of one or two elements before i has a larger mean than one of one or two from i on. Only such a
// point can be a vertex, without weights. Reads values[-2] .. values[count].
[[nodiscard]] std::uint32_t window_bits(const double* values, std::int64_t count);

}  // namespace isofold::cpu
