// What decides where pairs of doubles cannot: a block's elements walked again, by one thread inside a chunk
// or by a block of threads over a span.
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/gradient_plan.cuh"
#include "exact/long_accumulator.hpp"

namespace isofold::cuda {

enum class BlockSum { incoming, weight, total };

template <class I>
struct GradientAccumulators {
  using V = typename I::Value;
  using W = typename I::Weight;
  using G = typename I::Gradient;
  using Incoming = AccumulatorBetween<kLowest<G>, kHighest<G>>;
  using Weight = AccumulatorBetween<kLowest<W>, kHighest<W>>;
  using Total = AccumulatorBetween<kLowest<V> + kLowest<W>, kHighest<V> + kHighest<W>>;
};

template <BlockSum kWhich, class I, class Accumulator>
__device__ void accumulate(const I& input, std::int64_t i, Accumulator& sum) {
  if constexpr (kWhich == BlockSum::incoming) sum.add(input.incoming(i));
  if constexpr (kWhich == BlockSum::weight) sum.add(input.weight(i));
  if constexpr (kWhich == BlockSum::total) {
    if constexpr (I::kWeighted) {
      sum.add_product(input.value(i), input.weight(i));
    } else {
      sum.add(input.value(i));
    }
  }
}

template <BlockSum kWhich, class Accumulator, class I>
ISOFOLD_DEVICE_OUT_OF_LINE void accumulate_range(const I input, std::int64_t first, std::int64_t last,
                                                 Accumulator& sum) {
  for (std::int64_t i = first; i < last; ++i) accumulate<kWhich>(input, i, sum);
}

// S / W or G / W of the block [first, last) from long accumulators.
template <class I>
ISOFOLD_DEVICE_OUT_OF_LINE double accumulated_quotient(const I input, std::int64_t first, std::int64_t last,
                                                       bool of_total, bool to_float32) {
  using A = GradientAccumulators<I>;
  typename A::Weight weight;
  accumulate_range<BlockSum::weight>(input, first, last, weight);
  const Format format = gradient_format(to_float32);
  if (of_total) {
    typename A::Total total;
    accumulate_range<BlockSum::total>(input, first, last, total);
    return exact_quotient(total.value(), weight.value(), format);
  }
  typename A::Incoming incoming;
  accumulate_range<BlockSum::incoming>(input, first, last, incoming);
  return exact_quotient(incoming.value(), weight.value(), format);
}

// The same by sums of the block's own elements alone, whose unit may make them exact where the chunk's does
// not; long accumulators when that does not help either.
template <class I>
ISOFOLD_DEVICE_OUT_OF_LINE double walked_quotient(const I input, std::int64_t first, std::int64_t last,
                                                  bool of_total, bool to_float32) {
  SumBuilder numerator;
  SumBuilder weight;
  for (std::int64_t i = first; i < last; ++i) {
    if (!of_total) {
      numerator.add(input.incoming(i));
    } else if constexpr (I::kWeighted) {
      numerator.add_product(input.value(i), input.weight(i));
    } else {
      numerator.add(input.value(i));
    }
    if constexpr (I::kWeighted) weight.add(input.weight(i));
  }
  CertifiedSum sum{{static_cast<double>(last - first), 0.0}, 0.0};
  if constexpr (I::kWeighted) sum = weight.finish();
  return rounded_quotient(numerator.finish(), sum, gradient_format(to_float32),
                          [&] { return accumulated_quotient(input, first, last, of_total, to_float32); });
}

// RN(w_i G / W) for the `count` elements from `from` on of the block [first, last): its sums are formed once.
template <class I>
ISOFOLD_DEVICE_OUT_OF_LINE void walked_shares(const I input, std::int64_t first, std::int64_t last,
                                              std::int64_t from, int count, bool to_float32,
                                              double* results) {
  const Format format = gradient_format(to_float32);
  SumBuilder incoming;
  SumBuilder weight;
  for (std::int64_t i = first; i < last; ++i) {
    incoming.add(input.incoming(i));
    weight.add(input.weight(i));
  }
  const CertifiedSum g = incoming.finish();
  const CertifiedSum w = weight.finish();
  if (g.exact() && w.exact()) {
    const ExactNumber<2> exact_g = exact_pair(g.value);
    const ExactNumber<2> exact_w = exact_pair(w.value);
    for (int k = 0; k < count; ++k) {
      results[k] = exact_quotient(product(exact_double(input.weight(from + k)), exact_g), exact_w, format);
    }
    return;
  }
  typename GradientAccumulators<I>::Incoming long_g;
  typename GradientAccumulators<I>::Weight long_w;
  accumulate_range<BlockSum::incoming>(input, first, last, long_g);
  accumulate_range<BlockSum::weight>(input, first, last, long_w);
  const auto exact_g = long_g.value();
  const auto exact_w = long_w.value();
  for (int k = 0; k < count; ++k) {
    results[k] = exact_quotient(product(exact_double(input.weight(from + k)), exact_g), exact_w, format);
  }
}

// RN(w G / W) from exact pairs.
ISOFOLD_DEVICE_OUT_OF_LINE inline double exact_share(double w, const DoubleDouble incoming,
                                                     const DoubleDouble weight, bool to_float32) {
  return exact_quotient(product(exact_double(w), exact_pair(incoming)), exact_pair(weight),
                        gradient_format(to_float32));
}

// Room for the sums of a block of threads.
template <class Accumulator>
struct TeamAccumulators {
  std::uint64_t limbs[kBlock / 32][sizeof(Accumulator) / sizeof(std::uint64_t)];
  __device__ Accumulator& operator[](int warp) { return *reinterpret_cast<Accumulator*>(limbs[warp]); }
};

// One of the sums over the span that begins in chunk `owner` and ends in `last`, exactly, by all threads of a
// block: from the chunks' pairs where those are exact, else from their elements. Left in sums[0]; in step.
template <BlockSum kWhich, class I, class Accumulator>
ISOFOLD_DEVICE_OUT_OF_LINE void accumulate_span(const GradientPlan<I>& plan, std::int64_t owner,
                                                std::int64_t last, TeamAccumulators<Accumulator>& sums) {
  const int lane = Team<kBlock>::lane();
  Accumulator mine;
  for (std::int64_t first = owner + 32 * Team<kBlock>::warp(); first <= last; first += kBlock) {
    const std::int64_t chunk = first + lane;
    bool walked = false;
    if (chunk <= last) {
      const ChunkPieces& pieces = plan.pieces[chunk];
      const PieceSums& piece = chunk == owner ? pieces.tail : pieces.head;
      DoubleDouble pair = piece.incoming;
      bool exact = exact_as_pair(piece.incoming_size, pieces.units.incoming);
      if constexpr (kWhich == BlockSum::weight) {
        pair = piece.weight;
        exact = exact_as_pair(piece.weight.high, pieces.units.weight);
      }
      if constexpr (kWhich == BlockSum::total) {
        pair = piece.total;
        exact = exact_as_pair(piece.total_size, pieces.units.total);
      }
      if (exact) {
        mine.add(pair.high);
        mine.add(pair.low);
      }
      walked = !exact;
    }
    unsigned left = __ballot_sync(0xffffffffU, walked);
    while (left != 0) {
      const std::int64_t found = first + __ffs(static_cast<int>(left)) - 1;
      left &= left - 1;
      const std::int64_t begin = found * kGradientChunk;
      const ChunkPieces& pieces = plan.pieces[found];
      const int from = found == owner ? pieces.tail_begin : 0;
      const int to = found == owner ? plan.chunk_length(found) : pieces.head_end;
      for (int i = from + lane; i < to; i += 32) accumulate<kWhich>(plan.input, begin + i, mine);
    }
  }
  constexpr int kLimbs = sizeof(Accumulator) / sizeof(std::uint64_t);
  for (int step = 16; step > 0; step /= 2) {
    Accumulator other;
    std::uint64_t limbs[kLimbs];
    memcpy(limbs, &mine, sizeof limbs);
    for (int i = 0; i < kLimbs; ++i) limbs[i] = __shfl_down_sync(0xffffffffU, limbs[i], step);
    memcpy(&other, limbs, sizeof limbs);
    mine += other;
  }
  __syncthreads();
  if (lane == 0) sums[Team<kBlock>::warp()] = mine;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < kBlock / 32; ++warp) sums[0] += sums[warp];
  }
  __syncthreads();
}

}  // namespace isofold::cuda
