// What the kernels of a gradient share.
//
// A batch is one flat array cut by its block starts: every row begins with one, so rows need no attention of
// their own. The array is cut into chunks. Blocks inside a chunk are done with in one pass; the others
// (spans) leave partial sums in their chunks, which the chunk they begin in adds up and turns into one
// answer.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "cuda/elements.cuh"
#include "cuda/gradient_quotient.cuh"
#include "cuda/team.cuh"

namespace isofold::cuda {

inline constexpr int kGradientTile = 16;  // elements a thread
inline constexpr int kGradientChunk = kBlock * kGradientTile;
inline constexpr int kGradientGroup = 128;  // chunks that are passed over at once where a span covers them

// The arrays of a call, as doubles.
template <class ValueType, class WeightType, class GradientType>
struct GradientInput {
  using Value = ValueType;
  using Weight = WeightType;
  using Gradient = GradientType;
  static constexpr bool kWeighted = !std::is_same_v<Weight, Unweighted>;

  const Value* values;
  const Weight* weights;
  const Gradient* gradient;

  __device__ double value(std::int64_t i) const { return static_cast<double>(values[i]); }
  __device__ double weight(std::int64_t i) const {
    if constexpr (kWeighted) return static_cast<double>(weights[i]);
    return 1.0;
  }
  __device__ double incoming(std::int64_t i) const { return static_cast<double>(gradient[i]); }
};

// A NaN is the canonical quiet one and a zero positive, as on every executor.
__device__ inline double canonical(double x) {
  return x == x ? x + 0.0 : __longlong_as_double(0x7ff8000000000000LL);
}
__device__ inline float canonical(float x) { return x == x ? x + 0.0F : __int_as_float(0x7fc00000); }

struct GradientArray {
  void* data;  // or nullptr: not wanted
  int to_float32;

  __device__ void store(std::int64_t at, double value) const {
    if (to_float32 != 0) {
      static_cast<float*>(data)[at] = canonical(static_cast<float>(value));
    } else {
      static_cast<double*>(data)[at] = canonical(value);
    }
  }
};

// What was met in a block.
inline constexpr unsigned kRefused = 1;    // a value or weight that is not allowed
inline constexpr unsigned kNotFinite = 2;  // an incoming gradient that is not finite
inline constexpr unsigned kVaried = 4;     // a value other than the one before it in the block

// Sums over a piece of a block: G, W (where there are weights) and S (where a mean is needed).
struct PieceSums {
  DoubleDouble incoming;
  DoubleDouble weight;
  DoubleDouble total;
  double incoming_size = 0.0;  // sums of magnitudes
  double total_size = 0.0;
  unsigned marks = 0;
};

// Exponents of powers of two of which all terms are multiples.
struct TermUnits {
  int incoming = UnitTracker::kNone;
  int weight = UnitTracker::kNone;
  int total = UnitTracker::kNone;

  __device__ void merge(const TermUnits& other) {
    incoming = min(incoming, other.incoming);
    weight = min(weight, other.weight);
    total = min(total, other.total);
  }
};

template <class I, bool kMean>
__device__ PieceSums merged(const PieceSums& a, const PieceSums& b) {
  PieceSums sum;
  sum.incoming = a.incoming + b.incoming;
  sum.incoming_size = a.incoming_size + b.incoming_size;
  if constexpr (I::kWeighted) sum.weight = a.weight + b.weight;
  if constexpr (kMean) {
    sum.total = a.total + b.total;
    sum.total_size = a.total_size + b.total_size;
  }
  sum.marks = a.marks | b.marks;
  return sum;
}

// Sums that are exact as doubles.
struct PlainSums {
  double incoming = 0.0;
  double weight = 0.0;
  double total = 0.0;
  unsigned marks = 0;
};

template <class I, bool kMean>
__device__ PlainSums merged(const PlainSums& a, const PlainSums& b) {
  PlainSums sum;
  sum.incoming = a.incoming + b.incoming;
  if constexpr (I::kWeighted) sum.weight = a.weight + b.weight;
  if constexpr (kMean) sum.total = a.total + b.total;
  sum.marks = a.marks | b.marks;
  return sum;
}

// The error of a pair of sums, however they were added. One operation errs by at most 4 u^2 times the
// magnitudes that it adds (double_double.hpp, fact 2), so in all at most 4 u^2 times the operations on the
// longest path times all magnitudes. Tiles, chunks and groups of 2^19 elements are added in trees and, past
// that, in turn by 32 lanes: below 2^18 operations for 2^40 elements. The factor left covers the magnitudes'
// own rounding; 2^40 products may lose 2^-1075 each.
__device__ inline double piece_error(double magnitude, int unit, bool products) {
  if (exact_as_pair(magnitude, unit)) return 0.0;
  return 0x1p22 * kUnitRoundoff * kUnitRoundoff * magnitude + (products ? 0x1p-1030 : 0x1p-1070);
}

template <class I>
__device__ CertifiedSum certified_incoming(const PieceSums& sums, const TermUnits& units) {
  return {sums.incoming, piece_error(sums.incoming_size, units.incoming, false)};
}
template <class I>
__device__ CertifiedSum certified_weight(const PieceSums& sums, const TermUnits& units, std::int64_t count) {
  if constexpr (!I::kWeighted) return {{static_cast<double>(count), 0.0}, 0.0};
  return {sums.weight, piece_error(sums.weight.high, units.weight, false)};
}
template <class I>
__device__ CertifiedSum certified_total(const PieceSums& sums, const TermUnits& units) {
  return {sums.total, piece_error(sums.total_size, units.total, I::kWeighted)};
}

// A chunk's part in blocks that cross its ends.
struct ChunkPieces {
  int head_end;     // up to here the elements belong to a block that began in a chunk before
  int head_closed;  // and that ends here
  int tail_begin;   // from here on they belong to one that ends in a chunk after; the length: no such block
  TermUnits units;  // of all the chunk's terms
  PieceSums head;
  PieceSums tail;
};

// Chunks of a group that one block covers all of.
struct GroupPieces {
  int solid;
  TermUnits units;
  PieceSums sums;
};

// What the gradient of a block is made of: without weights share.high is dL/dy itself, rounded; with
// weights dL/dy_i = RN(w_i share). dL/dw_i = (y_i - mean) slope.
struct BlockAnswer {
  Quotient share{0.0, 0.0, 0.0};
  double mean = 0.0;
  double slope = 0.0;
};

// The answer for a span, kept by the chunk it begins in.
struct SpanAnswer {
  BlockAnswer answer;
  CertifiedSum incoming;  // weighted
  CertifiedSum weight;
  std::int64_t last_chunk;
};

template <class I>
struct GradientPlan {
  I input;
  const std::uint8_t* block_starts;
  std::int64_t total;
  std::int64_t chunks;
  GradientArray values;
  GradientArray weights;
  int bounded;
  int fit_to_float32;
  double lower;
  double upper;
  // Rows as the caller gave them: only offsets that do not rise are looked for.
  const std::int64_t* offsets;
  std::int64_t rows;
  int* faulty_offsets;  // ragged: there are some
  // Scratch, by chunk or by group.
  ChunkPieces* pieces;
  GroupPieces* groups;
  SpanAnswer* spans;
  std::int32_t* owner;            // of a chunk's head: the chunk its span begins in
  std::uint8_t* head_unfinished;  // elements there could not be rounded from the span's pairs
  std::uint8_t* tail_unfinished;
  std::uint8_t* span_unfinished;

  __device__ int chunk_length(std::int64_t chunk) const {
    const std::int64_t left = total - chunk * kGradientChunk;
    return static_cast<int>(left < kGradientChunk ? left : kGradientChunk);
  }
};

// Where the parts of a block's answer are decided, from the sums of its `count` elements. `plain`: they are
// exact as doubles. `slow(of_total, to_float32)` rounds S / W or G / W when the pairs cannot.
template <class I, bool kMean, class Slow>
__device__ BlockAnswer decide_block(const GradientPlan<I>& plan, const PieceSums& sums,
                                    const TermUnits& units, std::int64_t count, bool plain, Slow slow) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  const BlockAnswer nan{{kNaN, 0.0, 0.0}, 0.0, kNaN};
  if ((sums.marks & kRefused) != 0) return nan;
  const CertifiedSum weight = certified_weight<I>(sums, units, count);
  // Far from float32's end, where exact_doubles_mean cannot tell the largest number from infinity.
  plain = plain && !I::kWeighted && fabs(sums.incoming.high) < 0x1p126 && fabs(sums.total.high) < 0x1p126;
  const auto rounded = [&](bool of_total, bool to_float32) {
    const DoubleDouble& sum = of_total ? sums.total : sums.incoming;
    if (plain) return exact_doubles_mean(sum.high, static_cast<double>(count), to_float32);
    const CertifiedSum n = of_total ? certified_total<I>(sums, units) : certified_incoming<I>(sums, units);
    return rounded_gradient_quotient(n, weight, to_float32, [&] { return slow(of_total, to_float32); });
  };
  if constexpr (kMean) {
    if (plan.bounded != 0) {
      const double fit = rounded(true, plan.fit_to_float32 != 0);
      if (fit < plan.lower || fit > plan.upper) return {};
    }
  }
  if ((sums.marks & kNotFinite) != 0) return nan;
  BlockAnswer answer;
  if (plan.values.data != nullptr) {
    if constexpr (I::kWeighted) {
      answer.share = quotient_of(certified_incoming<I>(sums, units), weight);
    } else {
      answer.share.high = rounded(false, plan.values.to_float32 != 0);
    }
  }
  if constexpr (kMean) {
    // A block of one value has no derivative in its weights.
    if (plan.weights.data != nullptr && (sums.marks & kVaried) != 0) {
      answer.mean = rounded(true, false);
      answer.slope = rounded(false, false);
    }
  }
  return answer;
}

}  // namespace isofold::cuda
