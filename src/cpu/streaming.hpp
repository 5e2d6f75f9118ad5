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
  double highest = -std::numeric_limits<double>::infinity();
  UnitTracker unit;
};
[[nodiscard]] Statistics statistics(const double* values, std::int64_t count);

void multiply(const double* a, const double* b, std::int64_t count, double* out);

// out[k]: the sum of the terms before k, k = 0 .. count, in plain doubles, a chain of at most count
// additions.
void prefix_sums(const double* terms, std::int64_t count, double* out);

// Bit i of word w: values[32 w + i - 1] < values[32 w + i]. Only such a point can be a vertex, whatever the
// weights.
void rising_words(const double* values, std::int64_t words, std::uint32_t* out);

// Clears bit i of word w where some window of one or two elements before that point has a larger mean than
// one of one or two from it on: without weights it is no vertex then. Reads values[-2] .. values[32 words].
void window_words(const double* values, std::int64_t words, std::uint32_t* out);

// The sum of values[i] weights[i] as a pair; weights may be null. Exact where the survey of the data says so.
[[nodiscard]] DoubleDouble pair_sum(const double* values, const double* weights, std::int64_t count);

// The same for each of `tiles` runs of 32.
void pair_sums_of_tiles(const double* values, const double* weights, std::int64_t tiles, DoubleDouble* out);

// Of `tiles` >= 8 runs of 32: each one's sum as pair_sum would have it, and its depth, an upper bound of how
// far its diagram dips below the chord from its start to its end. A magnitude that is not finite says that a
// value is not, or that sums overflow; nothing else holds then.
[[nodiscard]] Statistics scan_tiles(const double* values, std::int64_t tiles, DoubleDouble* totals,
                                    double* depths);

}  // namespace isofold::cpu
