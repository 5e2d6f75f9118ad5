// The elements of spans from the spans' answers, what their pairs cannot decide, and batches that are
// refused.
#pragma once

#include <cstdint>

#include "cuda/gradient_exact.cuh"
#include "cuda/gradient_plan.cuh"
#include "cuda/offsets.cuh"
#include "cuda/start_kernel.cuh"
#include "exact/gradient_in_weights.hpp"

namespace isofold::cuda {

// Writes the elements [from, to) of the batch, of one span; whether all could be rounded from its pairs.
template <class I, bool kMean>
__device__ bool write_span(const GradientPlan<I>& plan, const SpanAnswer& span, std::int64_t from,
                           std::int64_t to) {
  bool finished = true;
  if (plan.values.data != nullptr) {
    const bool to_float32 = plan.values.to_float32 != 0;
    const Quotient share = span.answer.share;
    for (std::int64_t i = from + threadIdx.x; i < to; i += kBlock) {
      double result = share.high;
      if constexpr (I::kWeighted) {
        const double w = plan.input.weight(i);
        const RoundedValue found = scaled_quotient(w, share, to_float32);
        result = found.value;
        if (!found.decided) {
          if (span.incoming.exact() && span.weight.exact()) {
            result = exact_share(w, span.incoming.value, span.weight.value, to_float32);
          } else {
            finished = false;
          }
        }
      }
      plan.values.store(i, result);
    }
  }
  if constexpr (kMean) {
    if (plan.weights.data != nullptr) {
      for (std::int64_t i = from + threadIdx.x; i < to; i += kBlock) {
        plan.weights.store(i, gradient_in_weights(plan.input.value(i), span.answer.mean, span.answer.slope));
      }
    }
  }
  return finished;
}

template <class I, bool kMean>
__global__ void __launch_bounds__(kBlock) write_spans(const __grid_constant__ GradientPlan<I> plan) {
  begin_kernel();
  const std::int64_t chunk = blockIdx.x;
  const std::int64_t begin = chunk * kGradientChunk;
  const int length = plan.chunk_length(chunk);
  const int head_end = plan.pieces[chunk].head_end;
  const int tail_begin = plan.pieces[chunk].tail_begin;
  // Threads that mark store the same bytes, and the marks are not read before the next kernel.
  if (head_end > 0) {
    const std::int64_t owner = plan.owner[chunk];
    if (!write_span<I, kMean>(plan, plan.spans[owner], begin, begin + head_end)) {
      plan.head_unfinished[chunk] = 1;
      plan.span_unfinished[owner] = 1;
    }
  }
  if (tail_begin < length) {
    if (!write_span<I, kMean>(plan, plan.spans[chunk], begin + tail_begin, begin + length)) {
      plan.tail_unfinished[chunk] = 1;
      plan.span_unfinished[chunk] = 1;
    }
  }
}

// Spans whose sums are not exact as pairs and have elements next to a rounding midpoint: the sums are formed
// exactly, once a span, and those elements rounded from them. Each thread looks at one chunk.
template <class I>
__global__ void __launch_bounds__(kBlock) finish_spans(const __grid_constant__ GradientPlan<I> plan) {
  begin_kernel();
  using A = GradientAccumulators<I>;
  using ExactIncoming = decltype(typename A::Incoming{}.value());
  using ExactWeight = decltype(typename A::Weight{}.value());
  __shared__ TeamAccumulators<typename A::Incoming> incoming;
  __shared__ TeamAccumulators<typename A::Weight> weight;
  __shared__ __align__(8) unsigned char room_for_incoming[sizeof(ExactIncoming)];
  __shared__ __align__(8) unsigned char room_for_weight[sizeof(ExactWeight)];
  __shared__ unsigned marked[kBlock / 32];
  auto& exact_incoming = *reinterpret_cast<ExactIncoming*>(room_for_incoming);
  auto& exact_weight = *reinterpret_cast<ExactWeight*>(room_for_weight);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kBlock;
  const bool mark = first + threadIdx.x < plan.chunks && plan.span_unfinished[first + threadIdx.x] != 0;
  if (__syncthreads_or(static_cast<int>(mark)) == 0) return;
  const unsigned bits = __ballot_sync(0xffffffffU, mark);
  if (threadIdx.x % 32 == 0) marked[threadIdx.x / 32] = bits;
  __syncthreads();
  const bool to_float32 = plan.values.to_float32 != 0;
  for (int k = 0; k < kBlock; ++k) {
    if ((marked[k / 32] >> (k % 32) & 1U) == 0) continue;
    const std::int64_t owner = first + k;
    const SpanAnswer& span = plan.spans[owner];
    accumulate_span<BlockSum::incoming>(plan, owner, span.last_chunk, incoming);
    accumulate_span<BlockSum::weight>(plan, owner, span.last_chunk, weight);
    if (threadIdx.x == 0) {
      exact_incoming = incoming[0].value();
      exact_weight = weight[0].value();
    }
    __syncthreads();
    for (std::int64_t chunk = owner; chunk <= span.last_chunk; ++chunk) {
      const bool tail = chunk == owner;
      if ((tail ? plan.tail_unfinished : plan.head_unfinished)[chunk] == 0) continue;
      const ChunkPieces& pieces = plan.pieces[chunk];
      const std::int64_t begin = chunk * kGradientChunk;
      const std::int64_t from = begin + (tail ? pieces.tail_begin : 0);
      const std::int64_t to = begin + (tail ? plan.chunk_length(chunk) : pieces.head_end);
      for (std::int64_t i = from + threadIdx.x; i < to; i += kBlock) {
        const double w = plan.input.weight(i);
        if (scaled_quotient(w, span.answer.share, to_float32).decided) continue;
        plan.values.store(i, exact_quotient(product(exact_double(w), exact_incoming), exact_weight,
                                            gradient_format(to_float32)));
      }
    }
    __syncthreads();
  }
}

inline constexpr unsigned kRefusingBlocks = 264;

// Offsets that do not rise: all is NaN, as the fit is (offsets.cuh).
template <class I>
__global__ void __launch_bounds__(kBlock) refuse_gradient(const __grid_constant__ GradientPlan<I> plan) {
  begin_kernel();
  if (*plan.faulty_offsets == 0) return;
  refuse_all(plan, kRefusingBlocks, [&](std::int64_t i) {
    const double nan = __longlong_as_double(0x7ff8000000000000LL);
    if (plan.values.data != nullptr) plan.values.store(i, nan);
    if (plan.weights.data != nullptr) plan.weights.store(i, nan);
  });
}

}  // namespace isofold::cuda
