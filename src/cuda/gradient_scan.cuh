// Sums of the open block of every tile, carried over a block of threads.
#pragma once

#include <cstdint>

#include "cuda/gradient_plan.cuh"

namespace isofold::cuda {

// The block that is open at a place of a chunk: where it began there (-1: before the chunk) and its sums
// since.
template <class Sums>
struct OpenBlock {
  int start = -1;
  Sums sums;
};

template <class I, bool kMean, class Sums>
__device__ OpenBlock<Sums> continued(const OpenBlock<Sums>& before, const OpenBlock<Sums>& after) {
  if (after.start >= 0) return after;
  return {before.start, merged<I, kMean>(before.sums, after.sums)};
}

// What one of the warp's exchanges of doubles and ints makes of an open block.
template <class I, bool kMean, class Exchange>
__device__ OpenBlock<PieceSums> exchanged(const OpenBlock<PieceSums>& block, Exchange exchange) {
  const PieceSums& sums = block.sums;
  OpenBlock<PieceSums> other;
  other.sums.incoming = {exchange(sums.incoming.high), exchange(sums.incoming.low)};
  other.sums.incoming_size = exchange(sums.incoming_size);
  if constexpr (I::kWeighted) other.sums.weight = {exchange(sums.weight.high), exchange(sums.weight.low)};
  if constexpr (kMean) {
    other.sums.total = {exchange(sums.total.high), exchange(sums.total.low)};
    other.sums.total_size = exchange(sums.total_size);
  }
  const int packed = exchange((block.start + 1) | static_cast<int>(sums.marks << 16));
  other.start = (packed & 0xffff) - 1;
  other.sums.marks = static_cast<unsigned>(packed) >> 16;
  return other;
}

template <class I, bool kMean, class Exchange>
__device__ OpenBlock<PlainSums> exchanged(const OpenBlock<PlainSums>& block, Exchange exchange) {
  OpenBlock<PlainSums> other;
  other.sums.incoming = exchange(block.sums.incoming);
  if constexpr (I::kWeighted) other.sums.weight = exchange(block.sums.weight);
  if constexpr (kMean) other.sums.total = exchange(block.sums.total);
  const int packed = exchange((block.start + 1) | static_cast<int>(block.sums.marks << 16));
  other.start = (packed & 0xffff) - 1;
  other.sums.marks = static_cast<unsigned>(packed) >> 16;
  return other;
}

// The sum over a warp, in lane 0.
template <class I, bool kMean>
__device__ PieceSums warp_sum(const PieceSums& sums) {
  OpenBlock<PieceSums> block{-1, sums};
#pragma unroll 1
  for (int step = 16; step > 0; step /= 2) {
    const auto other =
        exchanged<I, kMean>(block, [&](auto x) { return __shfl_down_sync(0xffffffffU, x, step); });
    block.sums = merged<I, kMean>(block.sums, other.sums);
  }
  return block.sums;
}

__device__ inline TermUnits warp_units(TermUnits units) {
  for (int step = 16; step > 0; step /= 2) {
    units.merge({__shfl_down_sync(0xffffffffU, units.incoming, step),
                 __shfl_down_sync(0xffffffffU, units.weight, step),
                 __shfl_down_sync(0xffffffffU, units.total, step)});
  }
  return units;
}

// The block open before the thread's tile, from the tiles' own; `warps` holds a place a warp. `whole` becomes
// the one open after all of them, in the lanes of that number.
inline constexpr int kWholeLane = kBlock / 32 - 1;

template <class I, bool kMean, class Sums>
__device__ OpenBlock<Sums> scan_open_blocks(const OpenBlock<Sums>& own, OpenBlock<Sums>* warps,
                                            OpenBlock<Sums>& whole) {
  const int lane = Team<kBlock>::lane();
  const int warp = Team<kBlock>::warp();
  OpenBlock<Sums> inclusive = own;
#pragma unroll 1
  for (int step = 1; step < 32; step *= 2) {
    const auto other =
        exchanged<I, kMean>(inclusive, [&](auto x) { return __shfl_up_sync(0xffffffffU, x, step); });
    if (lane >= step) inclusive = continued<I, kMean>(other, inclusive);
  }
  if (lane == 31) warps[warp] = inclusive;
  __syncthreads();
  auto exclusive = exchanged<I, kMean>(inclusive, [](auto x) { return __shfl_up_sync(0xffffffffU, x, 1); });
  if (lane == 0) exclusive = {};
  // Every warp scans the warps again.
  whole = lane <= kWholeLane ? warps[lane] : OpenBlock<Sums>{};
#pragma unroll 1
  for (int step = 1; step <= kWholeLane; step *= 2) {
    const auto other =
        exchanged<I, kMean>(whole, [&](auto x) { return __shfl_up_sync(0xffffffffU, x, step); });
    if (lane >= step) whole = continued<I, kMean>(other, whole);
  }
  const int from = warp == 0 ? 0 : warp - 1;
  auto prefix = exchanged<I, kMean>(whole, [&](auto x) { return __shfl_sync(0xffffffffU, x, from); });
  if (warp == 0) prefix = {};
  return continued<I, kMean>(prefix, exclusive);
}

}  // namespace isofold::cuda
