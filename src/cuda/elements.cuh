// A row's elements in device memory, and the exact sums of runs of them: what decides when doubles cannot.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/certified.cuh"
#include "exact/long_accumulator.hpp"
#include "exact/rounded_quotient.hpp"
#include "geometry/turn.hpp"

namespace isofold::cuda {

struct Unweighted {};

template <class ValueType, class WeightType>
struct Elements {
  using Value = ValueType;
  using Weight = WeightType;
  static constexpr bool kWeighted = !std::is_same_v<Weight, Unweighted>;

  const Value* values;
  const Weight* weights;
  double sign;  // -1 for a non-increasing fit: the negated fit of the negated values

  __device__ double value(std::int64_t i) const { return sign * static_cast<double>(values[i]); }
  __device__ double weight(std::int64_t i) const {
    if constexpr (kWeighted) return static_cast<double>(weights[i]);
    return 1.0;
  }
  __device__ Elements from(std::int64_t begin) const {
    if constexpr (kWeighted) return {values + begin, weights + begin, sign};
    return {values + begin, nullptr, sign};
  }
};

// Adds w y and w of element i, which `source` holds, to pairs of sums. Unweighted, `weight` is left alone:
// the abscissa is the index.
template <class E, class Source>
__device__ void add_element(const Source& source, std::int64_t i, DoubleDouble& total, DoubleDouble& weight) {
  if constexpr (E::kWeighted) {
    const double w = source.weight(i);
    const TwoTerms product = two_product(w, source.value(i));
    total = total + DoubleDouble{product.high, product.low};
    weight = weight + w;
  } else {
    total = total + source.value(i);
  }
}

// Exponents of the lowest bit of a decoded double that holds a number of the type (its mantissa ends in
// zeros), and of the power of two above the largest.
template <class T>
inline constexpr int kLowest = std::is_same_v<T, float> ? -201 : (std::is_same_v<T, double> ? -1074 : -52);
template <class T>
inline constexpr int kHighest = std::is_same_v<T, float> ? 128 : (std::is_same_v<T, double> ? 1024 : 1);

// Room for 2^40 terms and a sign.
template <int Lowest, int Highest>
using AccumulatorBetween = LongAccumulator<(Highest - Lowest + 42 + 63) / 64, Lowest>;

template <class E>
struct RunSums {
  using V = typename E::Value;
  using W = typename E::Weight;
  AccumulatorBetween<kLowest<W>, kHighest<W>> weight;
  AccumulatorBetween<kLowest<V> + kLowest<W>, kHighest<V> + kHighest<W>> total;

  __device__ RunSums(const E& row, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if constexpr (E::kWeighted) {
        weight.add(row.weight(i));
        total.add_product(row.value(i), row.weight(i));
      } else {
        total.add(row.value(i));
      }
    }
    if constexpr (!E::kWeighted) weight.add(static_cast<double>(end - begin));
  }
};

// Tool 3: the turn at point b, and the mean of a run, from long accumulators over the elements themselves.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool exact_turn(const E row, std::int64_t a, std::int64_t b, std::int64_t d) {
  const RunSums<E> before(row, a, b);
  const RunSums<E> after(row, b, d);
  return turns_up(before.weight.value(), before.total.value(), after.weight.value(), after.total.value());
}

template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE double exact_mean(const E row, std::int64_t a, std::int64_t b, Format format) {
  const RunSums<E> run(row, a, b);
  return exact_quotient(run.total.value(), run.weight.value(), format);
}

// The mean of a run from its certified sums, rounded once.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE double certified_mean(const E row, std::int64_t a, std::int64_t b,
                                                 const CertifiedSum total, const CertifiedSum weight,
                                                 Format format) {
  if constexpr (!kCertified) return round_to(total.value.high / weight.value.high, format);
  return rounded_quotient(total, weight, format, [&] { return exact_mean(row, a, b, format); });
}

// total / count rounded once, both exact. In float64 that is the division itself. In float32 rounding the
// rounded quotient again goes wrong only where that is the midpoint of two floats, and the remainder says on
// which side of it the quotient lies: outside the subnormals a midpoint is seen by its last 29 bits.
__device__ inline double exact_doubles_mean(double total, double count, bool to_float32) {
  const double quotient = total / count;
  if (!to_float32) return quotient + 0.0;
  if constexpr (!kCertified) return static_cast<double>(static_cast<float>(quotient));
  const bool subnormal = !(fabs(quotient) >= 0x1p-125);
  if ((__double2loint(quotient) & 0x1fffffff) == 0x10000000 || subnormal) {
    const float below = __double2float_rd(quotient);
    const float above = __double2float_ru(quotient);
    const double middle = 0.5 * (static_cast<double>(below) + static_cast<double>(above));
    if (quotient == middle && below != above) {
      const double remainder = fma(-quotient, count, total);
      if (remainder > 0) return above;
      if (remainder < 0) return below;
    }
  }
  return static_cast<double>(static_cast<float>(quotient)) + 0.0;
}

}  // namespace isofold::cuda
