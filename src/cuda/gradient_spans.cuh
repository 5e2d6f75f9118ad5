// Blocks that cross the ends of chunks: their sums, one answer each, and its way to every element.
#pragma once

#include <cstdint>

#include "cuda/gradient_exact.cuh"
#include "cuda/gradient_plan.cuh"
#include "cuda/gradient_scan.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

// Groups of chunks that a block covers all of are added up, so that a long span takes few steps. A block of
// threads a group; the last chunks need none.
template <class I, bool kMean>
__global__ void __launch_bounds__(kGradientGroup) sum_groups(const __grid_constant__ GradientPlan<I> plan) {
  begin_kernel();
  __shared__ PieceSums sums[kGradientGroup / 32];
  __shared__ TermUnits units[kGradientGroup / 32];
  const std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * kGradientGroup + threadIdx.x;
  const ChunkPieces& pieces = plan.pieces[chunk];
  const int open = __syncthreads_and(pieces.head_closed == 0);
  if (open == 0) {
    if (threadIdx.x == 0) plan.groups[blockIdx.x].solid = 0;
    return;
  }
  const PieceSums of_warp = warp_sum<I, kMean>(pieces.head);
  const TermUnits units_of_warp = warp_units(pieces.units);
  if (threadIdx.x % 32 == 0) {
    sums[threadIdx.x / 32] = of_warp;
    units[threadIdx.x / 32] = units_of_warp;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  GroupPieces group{1, units[0], sums[0]};
  for (int warp = 1; warp < kGradientGroup / 32; ++warp) {
    group.sums = merged<I, kMean>(group.sums, sums[warp]);
    group.units.merge(units[warp]);
  }
  plan.groups[blockIdx.x] = group;
}

// The sums of a span and the chunk it ends in.
struct Span {
  PieceSums sums;
  TermUnits units;
  std::int64_t last_chunk;
  std::int64_t count;  // elements
};

// Adds up the span that begins in chunk `owner`, by a warp; sums and units are right in lane 0.
template <class I, bool kMean>
__device__ Span find_span(const GradientPlan<I>& plan, std::int64_t owner) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Span span{};
  if (lane == 0) {
    span.sums = plan.pieces[owner].tail;
    span.units = plan.pieces[owner].units;
  }
  const std::int64_t groups = plan.chunks / kGradientGroup;
  std::int64_t next = owner + 1;
  bool closed = false;
  while (!closed) {
    if (next % kGradientGroup == 0) {  // groups while they are solid
      const std::int64_t group = next / kGradientGroup + lane;
      GroupPieces pieces{};
      if (group < groups) pieces = plan.groups[group];
      const unsigned broken = ~__ballot_sync(0xffffffffU, pieces.solid != 0);
      const int taken = broken == 0 ? 32 : __ffs(static_cast<int>(broken)) - 1;
      if (lane < taken) {
        span.sums = merged<I, kMean>(span.sums, pieces.sums);
        span.units.merge(pieces.units);
      }
      next += std::int64_t{taken} * kGradientGroup;
      if (taken == 32) continue;
    }
    // Then chunks, up to the next group. The last chunk of all ends every block. What is read is read before
    // it is known to be needed: its way from memory is what takes time here.
    const std::int64_t stop = min(static_cast<long long>((next / kGradientGroup + 1) * kGradientGroup),
                                  static_cast<long long>(plan.chunks));
    const std::int64_t chunk = next + lane;
    PieceSums head;
    TermUnits units;
    bool closes = false;
    if (chunk < stop) {
      head = plan.pieces[chunk].head;
      units = plan.pieces[chunk].units;
      closes = plan.pieces[chunk].head_closed != 0;
    }
    const unsigned closing = __ballot_sync(0xffffffffU, closes);
    const int available = static_cast<int>(min(static_cast<long long>(stop - next), 32LL));
    closed = closing != 0;
    const int taken = closed ? __ffs(static_cast<int>(closing)) : available;
    if (lane < taken) {
      span.sums = merged<I, kMean>(span.sums, head);
      span.units.merge(units);
    }
    next += taken;
  }
  span.last_chunk = next - 1;
  span.sums = warp_sum<I, kMean>(span.sums);
  span.units = warp_units(span.units);
  const ChunkPieces& last = plan.pieces[span.last_chunk];
  span.count = span.last_chunk * kGradientChunk + last.head_end -
               (owner * kGradientChunk + plan.pieces[owner].tail_begin);
  return span;
}

// A quotient that a span's warp could not decide: which, and what all threads found it to be.
struct SpanQuestions {
  static constexpr int kNone = -1;
  int asked[kBlock / 32];
  std::int64_t owner[kBlock / 32];
  std::int64_t last[kBlock / 32];
  std::int64_t count[kBlock / 32];
  unsigned known[kBlock / 32];
  double found[kBlock / 32][4];
};

// Answers the warps' questions one after another. In step.
template <class I>
__device__ void answer_exactly(const GradientPlan<I>& plan, SpanQuestions& questions) {
  using A = GradientAccumulators<I>;
  __shared__ TeamAccumulators<typename A::Incoming> incoming;
  __shared__ TeamAccumulators<typename A::Total> total;
  __shared__ TeamAccumulators<typename A::Weight> weight;
  for (int warp = 0; warp < kBlock / 32; ++warp) {
    const int asked = questions.asked[warp];
    if (asked == SpanQuestions::kNone) continue;
    const std::int64_t owner = questions.owner[warp];
    const std::int64_t last = questions.last[warp];
    const bool of_total = asked / 2 != 0;
    if (of_total) {
      accumulate_span<BlockSum::total>(plan, owner, last, total);
    } else {
      accumulate_span<BlockSum::incoming>(plan, owner, last, incoming);
    }
    if constexpr (I::kWeighted) accumulate_span<BlockSum::weight>(plan, owner, last, weight);
    if (threadIdx.x == 0) {
      if constexpr (!I::kWeighted) {
        weight[0] = {};
        weight[0].add(static_cast<double>(questions.count[warp]));
      }
      const Format format = gradient_format(asked % 2 != 0);
      questions.found[warp][asked] = of_total
                                         ? exact_quotient(total[0].value(), weight[0].value(), format)
                                         : exact_quotient(incoming[0].value(), weight[0].value(), format);
      questions.known[warp] |= 1U << asked;
    }
    __syncthreads();
  }
  __syncthreads();  // all have read what was asked
}

// Chunks whose spans a block answers: few blocks where few chunks begin one.
inline constexpr int kOwnersABlock = 64;

// The answer of every span, by a warp for the chunk that it begins in.
template <class I, bool kMean>
__global__ void __launch_bounds__(kBlock, 2) answer_spans(const __grid_constant__ GradientPlan<I> plan) {
  begin_kernel();
  __shared__ SpanQuestions questions;
  const int lane = Team<kBlock>::lane();
  const int warp = Team<kBlock>::warp();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kOwnersABlock;
  if (threadIdx.x < kOwnersABlock && first + threadIdx.x < plan.chunks) {
    plan.head_unfinished[first + threadIdx.x] = 0;
    plan.tail_unfinished[first + threadIdx.x] = 0;
    plan.span_unfinished[first + threadIdx.x] = 0;
  }
  // Of the block's chunks every eighth is the warp's.
  constexpr int kWarps = kBlock / 32;
  const std::int64_t candidate = first + warp + kWarps * lane;
  const bool begins = lane < kOwnersABlock / kWarps && candidate < plan.chunks &&
                      plan.pieces[candidate].tail_begin < plan.chunk_length(candidate);
  unsigned left = __ballot_sync(0xffffffffU, begins);
  Span span{};
  bool found = false;
  for (;;) {
    int asked = SpanQuestions::kNone;
    while (left != 0 && asked == SpanQuestions::kNone) {
      const std::int64_t owner = first + warp + kWarps * (__ffs(static_cast<int>(left)) - 1);
      if (!found) {
        span = find_span<I, kMean>(plan, owner);
        found = true;
        for (std::int64_t chunk = owner + 1 + lane; chunk <= span.last_chunk; chunk += 32)
          plan.owner[chunk] = static_cast<std::int32_t>(owner);
        if (lane == 0) {
          questions.owner[warp] = owner;
          questions.last[warp] = span.last_chunk;
          questions.count[warp] = span.count;
          questions.known[warp] = 0;
        }
      }
      if (lane == 0) {
        const auto ask = [&](bool of_total, bool to_float32) {
          const int question = 2 * static_cast<int>(of_total) + static_cast<int>(to_float32);
          if ((questions.known[warp] >> question & 1U) != 0) return questions.found[warp][question];
          if (asked == SpanQuestions::kNone) asked = question;
          return 0.0;
        };
        const BlockAnswer answer =
            decide_block<I, kMean>(plan, span.sums, span.units, span.count, false, ask);
        if (asked == SpanQuestions::kNone) {
          SpanAnswer& kept = plan.spans[owner];
          kept.answer = answer;
          kept.last_chunk = span.last_chunk;
          if constexpr (I::kWeighted) {
            kept.incoming = certified_incoming<I>(span.sums, span.units);
            kept.weight = certified_weight<I>(span.sums, span.units, span.count);
          }
        }
      }
      asked = __shfl_sync(0xffffffffU, asked, 0);
      if (asked == SpanQuestions::kNone) {
        left &= left - 1;
        found = false;
      }
    }
    if (lane == 0) questions.asked[warp] = asked;
    if (__syncthreads_or(static_cast<int>(asked != SpanQuestions::kNone)) == 0) return;
    answer_exactly(plan, questions);
  }
}

}  // namespace isofold::cuda
