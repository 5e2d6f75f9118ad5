// What the kernels of segment reductions share: the plan of a call, loads, and how a segment is finished.
//
// Elements are cut into chunks of equal length, one for each warp. What a warp finds of a segment that ends
// in its chunk and begins there too is that segment's value. Else the parts are kept: the head of a chunk
// belongs to a segment begun before it, the tail to one that goes on after it. Parts are pairs of doubles
// with a proven error (exact/compensated_sum.hpp), which nearly always decides the rounding. Segments that it
// leaves undecided are listed and summed again in exact digits.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "cuda/team.cuh"
#include "exact/compensated_sum.hpp"
#include "exact/digit_accumulator.hpp"
#include "isofold/arrays.hpp"

namespace isofold::cuda {

// Elements of a warp: the more, the less of its time goes into finding its segment and adding its lanes up,
// as long as there are warps enough to fill a device.
inline constexpr std::int64_t kLeastDotChunk = 2048;
inline constexpr std::int64_t kMostDotChunk = 8192;
inline constexpr std::int64_t kDotChunksEnough = 32768;
inline constexpr int kDotWarps = 4;   // of a block: few, so that the last blocks leave few processors idle
inline constexpr int kMostPairs = 3;  // reductions in one pass
inline constexpr int kJoinThreads = 1024;
inline constexpr std::int64_t kExactSlice = 1 << 15;  // elements that a block adds up in digits

// One reduction: of a b, of a where b is null.
struct DotPair {
  const void* a;
  const void* b;
  void* out;
  DataType out_type;
  int root;
};

// Exact digits of a segment over several slices, and how many blocks have added theirs.
struct DigitSlot {
  unsigned long long digits[kDigits];
  unsigned int special;  // 1: NaN, 2: infinity, 4: minus infinity
  unsigned int arrivals;
};

struct DotPlan {
  DotPair pairs[kMostPairs];
  int pair_count;
  const std::int64_t* offsets;  // null: segments of row_length
  std::int64_t row_length;
  std::int64_t rows;
  std::int64_t total;
  std::int64_t chunk;  // elements
  std::int64_t chunks;

  // Zero when a pass begins: cleared before, or left so by the pass before (`prepared`), whose judgement of
  // the offsets then holds too.
  int* faulty_offsets;
  unsigned long long* undecided_count;
  unsigned int* finished_blocks;  // of the last kernel
  int prepared;
  std::int64_t* undecided;     // segment * kMostPairs + pair
  CompensatedSum* heads;       // by chunk and pair
  CompensatedSum* tails;       //
  std::int64_t* tail_segment;  // by chunk; -1: none
  DigitSlot* slots;            // for undecided segments longer than a slice
  std::int64_t slot_count;

  __device__ std::int64_t begin(std::int64_t segment) const {
    return offsets != nullptr ? offsets[segment] : segment * row_length;
  }
  __device__ std::int64_t end(std::int64_t segment) const {
    return offsets != nullptr ? offsets[segment + 1] : (segment + 1) * row_length;
  }
};

// ---- Elements as doubles, exactly ----

__device__ inline double as_double(float x) { return static_cast<double>(x); }
__device__ inline double as_double(double x) { return x; }
__device__ inline double as_double(BFloat16 x) {
  return static_cast<double>(__uint_as_float(static_cast<std::uint32_t>(x.bits) << 16));
}
__device__ inline double as_double(Float16 x) {
  const std::uint32_t magnitude = x.bits & 0x7FFFU;
  // The exponent is off by 112; infinities and NaNs have the highest one.
  const float finite = __uint_as_float(magnitude << 13) * 0x1p112F;
  const float found = magnitude < 0x7C00U ? finite : __uint_as_float(0x7F800000U | magnitude << 13);
  return static_cast<double>((x.bits & 0x8000U) != 0 ? -found : found);
}

__device__ inline Format dot_format(DataType type) {
  if (type == DataType::float64) return kFloat64;
  if (type == DataType::float32) return kFloat32;
  if (type == DataType::float16) return kFloat16;
  return kBFloat16;
}

// The bits of a number that float16 holds.
__device__ inline std::uint16_t float16_bits(double x) {
  const std::uint32_t bits = __float_as_uint(static_cast<float>(x));
  const std::uint32_t sign = bits >> 16 & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return 0x7E00U;
  if (magnitude == 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
  if (magnitude >= 0x38800000U) return static_cast<std::uint16_t>(sign | (magnitude - 0x38000000U) >> 13);
  const float units = __uint_as_float(magnitude) * 0x1p24F;
  return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(units));
}

__device__ inline void store_dot(const DotPair& pair, std::int64_t segment, double value) {
  if (value != value) value = __longlong_as_double(0x7ff8000000000000LL);
  if (pair.out_type == DataType::float64) {
    static_cast<double*>(pair.out)[segment] = value;
  } else if (pair.out_type == DataType::float32) {
    // A NaN's payload would pass the conversion: there is none.
    static_cast<float*>(pair.out)[segment] = static_cast<float>(value);
  } else if (pair.out_type == DataType::float16) {
    static_cast<std::uint16_t*>(pair.out)[segment] = float16_bits(value);
  } else {
    static_cast<std::uint16_t*>(pair.out)[segment] =
        value != value ? 0x7FC0U
                       : static_cast<std::uint16_t>(__float_as_uint(static_cast<float>(value)) >> 16);
  }
}

// ---- A lane's sums ----

struct DotLane {
  double sum = 0.0;
  double lost = 0.0;
  double spread = 0.0;

  // A term and, unless terms are exact, what its product lost. Returns what went into `lost`.
  template <bool kExactTerms>
  __device__ double add(double term, double product_lost) {
    const double next = sum + term;
    const double term_part = next - sum;
    double rest = (sum - (next - term_part)) + (term - term_part);
    if constexpr (!kExactTerms) rest += product_lost;
    lost += rest;
    spread += fabs(rest);
    sum = next;
    return rest;
  }

  __device__ CompensatedSum finished(int terms, bool exact_terms) const {
    return {sum, lost, lane_error(spread, terms, exact_terms)};
  }
};

// a b, what it lost, and whether that itself may have underflowed.
__device__ inline double dot_product(double a, double b, double* lost, bool* risky) {
  const double product = a * b;
  *lost = std::fma(a, b, -product);
  // By the exponent, which costs no double arithmetic: below 2^-960.
  if ((__double2hiint(product) & 0x7FFFFFFF) < 0x03F00000 && a != 0.0 && b != 0.0) *risky = true;
  return product;
}

// What a product's low part may be off by where it underflows.
inline constexpr double kUnderflow = 0x1p-1070;

// The sum over groups of `width` lanes, a power of two, for all lanes of the warp together.
__device__ inline CompensatedSum sum_over_lanes(CompensatedSum sum, int width) {
  for (int step = 1; step < width; step *= 2) {
    const CompensatedSum other{__shfl_xor_sync(0xffffffffU, sum.high, step),
                               __shfl_xor_sync(0xffffffffU, sum.low, step),
                               __shfl_xor_sync(0xffffffffU, sum.error, step)};
    sum = sum + other;
  }
  return sum;
}

// Stores a segment's value, or lists it.
ISOFOLD_DEVICE_OUT_OF_LINE inline void finish_segment(const DotPlan& plan, int pair, std::int64_t segment,
                                                      CompensatedSum sum) {
  const DotPair& found = plan.pairs[pair];
  const Format format = dot_format(found.out_type);
  const RoundedValue rounded = found.root != 0 ? round_root(sum, format) : round_compensated(sum, format);
  if (rounded.decided) {
    store_dot(found, segment, rounded.value);
    return;
  }
  const unsigned long long place = atomicAdd(plan.undecided_count, 1ULL);
  plan.undecided[place] = segment * kMostPairs + pair;
}

}  // namespace isofold::cuda
