// The streaming passes over a chunk, eight elements side by side.
#include <cmath>
#include <limits>

#include "cpu/chunk.hpp"
#include "cpu/streaming.hpp"
#include "cpu/vector_clones.hpp"

namespace isofold::cpu {
namespace {

constexpr int kLanes = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

ISOFOLD_VECTOR_CLONES
Statistics statistics(const double* values, std::int64_t count) {
  double magnitude[kLanes] = {};
  double sum[kLanes] = {};
  double poison[kLanes] = {};
  double smallest[kLanes];
  double lowest[kLanes];
  std::uint64_t bits[kLanes] = {};
  for (int lane = 0; lane < kLanes; ++lane) smallest[lane] = lowest[lane] = kInfinity;
  const auto see = [&](int lane, double value) {
    const double size = std::fabs(value);
    magnitude[lane] += size;
    sum[lane] += value;
    poison[lane] += value * 0.0;
    const double nonzero = size == 0.0 ? kInfinity : size;
    smallest[lane] = nonzero < smallest[lane] ? nonzero : smallest[lane];
    lowest[lane] = value < lowest[lane] ? value : lowest[lane];
    bits[lane] |= bits_of(value);
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) see(lane, values[i + lane]);
  }
  for (int lane = 0; i < count; ++i, ++lane) see(lane, values[i]);
  Statistics result;
  for (int lane = 0; lane < kLanes; ++lane) {
    result.magnitude += magnitude[lane];
    result.finite = result.finite && poison[lane] == 0.0;
    result.lowest = lowest[lane] < result.lowest ? lowest[lane] : result.lowest;
    result.unit.merge({smallest[lane], bits[lane]});
  }
  return result;
}

ISOFOLD_VECTOR_CLONES
void multiply(const double* a, const double* b, std::int64_t count, double* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

// Eight stretches side by side hide the latency of the additions; a second pass adds where each stretch begins.
ISOFOLD_VECTOR_CLONES
void prefix_sums(const double* terms, std::int64_t count, double* out) {
  const std::int64_t stretch = count / kLanes;
  double sum[kLanes] = {};
  for (std::int64_t i = 0; i < stretch; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      out[lane * stretch + i] = sum[lane];
      sum[lane] += terms[lane * stretch + i];
    }
  }
  double start = sum[0];
  for (int lane = 1; lane < kLanes; ++lane) {
    for (std::int64_t i = 0; i < stretch; ++i) out[lane * stretch + i] += start;
    start += sum[lane];
  }
  for (std::int64_t i = kLanes * stretch; i < count; ++i) {
    out[i] = start;
    start += terms[i];
  }
  out[count] = start;
}

namespace {

// Packs 32 answers of `test(i)` into a word. Lanes of 64 bits match the doubles that the tests compare.
template <class Test>
inline __attribute__((always_inline)) std::uint32_t pack_tile(Test&& test) {
  std::uint64_t bits[kLanes] = {};
  for (int first = 0; first < 32; first += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      bits[lane] |= test(first + lane) ? std::uint64_t{1} << (first + lane) : 0;
    }
  }
  std::uint64_t word = 0;
  for (const std::uint64_t part : bits) word |= part;
  return static_cast<std::uint32_t>(word);
}

}  // namespace

ISOFOLD_VECTOR_CLONES
void rising_words(const double* values, std::int64_t words, std::uint32_t* out) {
  for (std::int64_t w = 0; w < words; ++w) {
    const double* tile = values + 32 * w;
    out[w] = pack_tile([&](int i) { return tile[i - 1] < tile[i]; });
  }
}

// Sums of two are rounded monotonically: rounded sums in falling order prove real ones in falling order, and 2 y is
// exact but for overflow, where the infinity keeps its order, too.
ISOFOLD_VECTOR_CLONES
void window_words(const double* values, std::int64_t words, std::uint32_t* out) {
  for (std::int64_t w = 0; w < words; ++w) {
    if (out[w] == 0 || out[w] == ~0U) continue;
    const double* tile = values + 32 * w;
    out[w] &= pack_tile([&](int i) {
      const double left = tile[i - 2] + tile[i - 1];
      const double right = tile[i] + tile[i + 1];
      const bool falls = (left > right) | (2 * tile[i - 1] > right) | (left > 2 * tile[i]);
      return !falls;
    });
  }
}

namespace {

// Two compensated sums become one: `high` exactly, what that loses joins `low`.
inline void join(double* high, double* low, double other_high, double other_low) {
  const TwoTerms sum = two_sum(*high, other_high);
  *high = sum.high;
  *low += other_low + sum.low;
}

// term(i, &lost) gives the i-th term, and what its rounding lost.
template <class Term>
inline __attribute__((always_inline)) DoubleDouble compensated_sum(std::int64_t count, Term&& term) {
  double high[kLanes] = {};
  double low[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      double lost;
      const double value = term(i + lane, &lost);
      join(&high[lane], &low[lane], value, lost);
    }
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    double lost;
    const double value = term(i, &lost);
    join(&high[lane], &low[lane], value, lost);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) join(&high[lane], &low[lane], high[lane + half], low[lane + half]);
  }
  const TwoTerms normalized = two_sum(high[0], low[0]);
  return {normalized.high, normalized.low};
}

inline __attribute__((always_inline)) DoubleDouble sum_values(const double* values, std::int64_t count) {
  return compensated_sum(count, [&](std::int64_t i, double* lost) {
    *lost = 0.0;
    return values[i];
  });
}

inline __attribute__((always_inline)) DoubleDouble sum_products(const double* values, const double* weights,
                                                                std::int64_t count) {
  return compensated_sum(count, [&](std::int64_t i, double* lost) {
    const TwoTerms product = two_product(values[i], weights[i]);
    *lost = product.low;
    return product.high;
  });
}

}  // namespace

ISOFOLD_VECTOR_CLONES
DoubleDouble pair_sum(const double* values, const double* weights, std::int64_t count) {
  return weights == nullptr ? sum_values(values, count) : sum_products(values, weights, count);
}

ISOFOLD_VECTOR_CLONES
void pair_sums_of_tiles(const double* values, const double* weights, std::int64_t tiles, DoubleDouble* out) {
  for (std::int64_t t = 0; t < tiles; ++t) {
    out[t] = weights == nullptr ? sum_values(values + 32 * t, 32) : sum_products(values + 32 * t, weights + 32 * t, 32);
  }
}

}  // namespace isofold::cpu
