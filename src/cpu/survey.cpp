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

ISOFOLD_VECTOR_CLONES
std::uint32_t rising_bits(const double* values, std::int64_t count) {
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bits |= static_cast<std::uint32_t>(values[i - 1] < values[i]) << i;
  }
  return bits;
}

// Sums of two are rounded monotonically: rounded sums in falling order prove real ones in falling order, and 2 y is
// exact but for overflow, where the infinity keeps its order, too.
ISOFOLD_VECTOR_CLONES
std::uint32_t window_bits(const double* values, std::int64_t count) {
  std::uint32_t bits = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double left = values[i - 2] + values[i - 1];
    const double right = values[i] + values[i + 1];
    const bool falls = left > right || 2 * values[i - 1] > right || left > 2 * values[i];
    bits |= static_cast<std::uint32_t>(!falls) << i;
  }
  return bits;
}

namespace {

// A compensated sum: high + low is the sum, low gathering what the additions to high lose.
struct Lane {
  double high = 0.0;
  double low = 0.0;
};

}  // namespace

ISOFOLD_VECTOR_CLONES
DoubleDouble pair_sum(const double* values, const double* weights, std::int64_t count) {
  Lane lanes[kLanes];
  const auto add = [&](int lane, double term, double lost) {
    const TwoTerms sum = two_sum(lanes[lane].high, term);
    lanes[lane].high = sum.high;
    lanes[lane].low += sum.low + lost;
  };
  std::int64_t i = 0;
  if (weights == nullptr) {
    for (; i + kLanes <= count; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) add(lane, values[i + lane], 0.0);
    }
    for (int lane = 0; i < count; ++i, ++lane) add(lane, values[i], 0.0);
  } else {
    for (; i + kLanes <= count; i += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const TwoTerms product = two_product(values[i + lane], weights[i + lane]);
        add(lane, product.high, product.low);
      }
    }
    for (int lane = 0; i < count; ++i, ++lane) {
      const TwoTerms product = two_product(values[i], weights[i]);
      add(lane, product.high, product.low);
    }
  }
  DoubleDouble result;
  for (const Lane& lane : lanes) {
    const TwoTerms normalized = two_sum(lane.high, lane.low);
    result = result + DoubleDouble{normalized.high, normalized.low};
  }
  return result;
}

}  // namespace isofold::cpu
