// The sums that a lane pools a row by: plain doubles where those are exact, pairs where pairs are.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "cuda/gradient_quotient.cuh"
#include "cuda/scan.cuh"

namespace isofold::cuda {

// A row in shared memory, as its lane sees it.
template <class V>
struct LaneRow {
  V* values;
  std::uint8_t* stack;
  int length;
  V sign;
};

// A width as a double, in one addition: converting takes eight times as long.
__device__ inline double as_width(int count) { return __hiloint2double(0x43300000, count) - 0x1p52; }

// sum / count in float32, both exact. Powers of two divide exactly. Else the product with a reciprocal is off
// by less than 2^-43 of itself, 2^10 units of a double, and rounds as the quotient does where its last 29
// bits are further from a midpoint of two floats.
__device__ inline float lane_mean(double sum, int count) {
  if ((count & (count - 1)) == 0) {
    return static_cast<float>(sum * __hiloint2double((1024 - __ffs(count)) << 20, 0));
  }
  const double width = as_width(count);
  const auto near = static_cast<double>(__fdividef(1.0F, static_cast<float>(count)));  // off by 2^-22
  const double quotient = sum * (near * (2 - width * near));
  const int tail = (__double2loint(quotient) & 0x1fffffff) - 0x10000000;
  const double size = fabs(quotient);
  const bool usual = (size > 0x1p-125 && size < 0x1p127) || sum == 0;
  const bool decided = usual && (tail > 0x800 || tail < -0x800);
  return decided || !kCertified ? static_cast<float>(quotient)
                                : static_cast<float>(exact_doubles_mean(sum, width, true));
}

// Sums of floats that are exact as doubles. A block's sum is kept in the places of its first two values.
struct PlainLaneSums {
  using Sum = double;
  using Row = LaneRow<float>;

  __device__ static Sum single(const Row& row, int k) {
    return static_cast<double>(row.sign * row.values[k]);
  }
  __device__ static Sum kept(const Row& row, int start, int count) {
    const float first = row.values[start];
    if (count == 1) return static_cast<double>(row.sign * first);
    return __hiloint2double(__float_as_int(row.values[start + 1]), __float_as_int(first));
  }
  __device__ static void keep(const Row& row, int start, int count, Sum sum) {
    if (count == 1) return;
    row.values[start] = __int_as_float(__double2loint(sum));
    row.values[start + 1] = __int_as_float(__double2hiint(sum));
  }
  // Whether the mean of a block of `width` is above that of another.
  __device__ static bool above(Sum sum, double width, Sum other, double other_width) {
    return product_above(sum, other_width, other, width);
  }
  __device__ static bool mean(Sum sum, int count, bool, float* result) {
    *result = lane_mean(sum, count);
    return true;
  }

  // Whether all sums are exact; false where a value is not finite.
  __device__ static bool hold(const Row& row) {
    FloatUnit unit;
    float magnitude = 0;
#pragma unroll 4
    for (int k = 0; k < row.length; ++k) {
      const float value = row.values[k];
      unit.see(value);
      magnitude += fabsf(value);
    }
    return magnitude < 0x1p120F &&
           exact_as_double(static_cast<double>(magnitude) * (1 + 0x1p-16), unit.unit());
  }
};

// Sums that are exact as pairs of doubles, kept in the places of a block's first two doubles or four floats;
// shorter blocks of floats are summed again.
template <class V>
struct PairLaneSums {
  using Sum = DoubleDouble;
  using Row = LaneRow<V>;
  static constexpr int kPlaces = 2 * static_cast<int>(sizeof(double) / sizeof(V));

  __device__ static Sum single(const Row& row, int k) {
    return {static_cast<double>(row.sign * row.values[k]), 0.0};
  }
  __device__ static Sum kept(const Row& row, int start, int count) {
    if (count < kPlaces) {
      Sum sum = single(row, start);
      for (int k = 1; k < count; ++k) sum = sum + static_cast<double>(row.sign * row.values[start + k]);
      return sum;
    }
    const V* at = row.values + start;
    if constexpr (sizeof(V) == sizeof(double)) {
      return {at[0], at[1]};
    } else {
      return {__hiloint2double(__float_as_int(at[1]), __float_as_int(at[0])),
              __hiloint2double(__float_as_int(at[3]), __float_as_int(at[2]))};
    }
  }
  __device__ static void keep(const Row& row, int start, int count, const Sum& sum) {
    if (count < kPlaces) return;
    V* at = row.values + start;
    if constexpr (sizeof(V) == sizeof(double)) {
      at[0] = sum.high;
      at[1] = sum.low;
    } else {
      at[0] = __int_as_float(__double2loint(sum.high));
      at[1] = __int_as_float(__double2hiint(sum.high));
      at[2] = __int_as_float(__double2loint(sum.low));
      at[3] = __int_as_float(__double2hiint(sum.low));
    }
  }
  // From high parts where these decide: each is off by u of itself, their products and the difference by as
  // much again, 2^-50 being more. Else every term is a multiple of the unit and below 2^9 times the row's
  // magnitudes, so that pairs add them exactly (double_double.hpp, fact 1; `hold` asks for the 2^9).
  __device__ static bool above(const Sum& sum, double width, const Sum& other, double other_width) {
    const double left = sum.high * other_width;
    const double right = other.high * width;
    const double difference = left - right;
    if (!kCertified || fabs(difference) > 0x1p-50 * (fabs(left) + fabs(right))) return difference > 0;
    const auto times = [](double x, double by) {
      const TwoTerms terms = two_product(x, by);
      return DoubleDouble{terms.high, terms.low};
    };
    return ((times(sum.high, other_width) - times(other.high, width)) +
            (times(sum.low, other_width) - times(other.low, width)))
               .high > 0;
  }
  __device__ static bool mean(const Sum& sum, int count, bool to_float32, V* result) {
    if (count == 1) {
      *result = static_cast<V>(to_float32 ? static_cast<float>(sum.high) : sum.high);
      return true;
    }
    bool decided = true;
    *result =
        static_cast<V>(rounded_gradient_quotient({sum, 0.0}, {{as_width(count), 0.0}, 0.0}, to_float32, [&] {
          decided = false;
          return 0.0;
        }));
    return decided;
  }

  __device__ static bool hold(const Row& row) {
    BitTracker<V> bits;
    double magnitude = 0;
#pragma unroll 4
    for (int k = 0; k < row.length; ++k) {
      bits.see(row.values[k]);
      magnitude += fabs(static_cast<double>(row.values[k]));
    }
    return bits.finite() && exact_as_pair(magnitude * 0x1p10, bits.unit());
  }
};

}  // namespace isofold::cuda
