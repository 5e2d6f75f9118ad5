// The hull of a list of points by sweeps: every inner point that is not strictly below the chord of its two
// neighbours dies, all at once, until none does. Each death is right whatever the neighbours' fate, so the
// order does not matter, and the last list bends up at every point: it is the hull.
//
// What is swept is a list of point numbers in shared memory; the points stay where they are.
#pragma once

#include <cstdint>

#include "cuda/team.cuh"
#include "geometry/point.hpp"

namespace isofold::cuda {

inline constexpr int kWarpSweep = 128;  // what one warp sweeps alone

// Reduces `order`, the numbers of `count` <= Capacity points from left to right, to the hull's, and returns how
// many are left. One warp. `is_vertex(a, b, d)` takes numbers.
template <int Capacity, class IsVertex>
__device__ int sweep_warp(std::uint16_t* order, int count, IsVertex is_vertex) {
  constexpr int kRounds = Capacity / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (;;) {
    std::uint16_t mine[kRounds];
    unsigned alive[kRounds];
    int left = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int i = r * 32 + lane;
      if (r * 32 < count) {
        bool stays = i < count;
        if (stays) mine[r] = order[i];
        if (i > 0 && i < count - 1) stays = is_vertex(order[i - 1], mine[r], order[i + 1]);
        alive[r] = __ballot_sync(0xffffffffU, stays);
        left += __popc(alive[r]);
      }
    }
    if (left == count) return count;
    __syncwarp();
    int before = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      if (r * 32 < count) {
        if ((alive[r] >> lane & 1U) != 0) order[before + __popc(alive[r] & ((1U << lane) - 1U))] = mine[r];
        before += __popc(alive[r]);
      }
    }
    count = left;
    __syncwarp();
  }
}

// The same by the whole block, which one warp relieves once the points are few. `counts`: shared, one entry a
// warp and round.
template <int Capacity, class IsVertex>
__device__ int sweep_block(std::uint16_t* order, int count, int* counts, IsVertex is_vertex) {
  constexpr int kRounds = Capacity / kBlock;
  constexpr int kWarps = kBlock / 32;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  __syncthreads();
  while (count > kWarpSweep) {
    std::uint16_t mine[kRounds];
    unsigned alive[kRounds];
    int died = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int i = r * kBlock + thread;
      bool stays = i < count;
      if (stays) mine[r] = order[i];
      if (i > 0 && i < count - 1) {
        stays = is_vertex(order[i - 1], mine[r], order[i + 1]);
        if (!stays) died = 1;
      }
      alive[r] = __ballot_sync(0xffffffffU, stays);
      if (lane == 0) counts[r * kWarps + warp] = __popc(alive[r]);
    }
    if (__syncthreads_or(died) == 0) return count;
    int left = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      for (int w = 0; w < kWarps; ++w) {
        if (w == warp && (alive[r] >> lane & 1U) != 0) {
          order[left + __popc(alive[r] & ((1U << lane) - 1U))] = mine[r];
        }
        left += counts[r * kWarps + w];
      }
    }
    count = left;
    __syncthreads();
  }
  if (warp == 0) {
    count = sweep_warp<kWarpSweep>(order, count, is_vertex);
    if (lane == 0) counts[0] = count;
  }
  __syncthreads();
  count = counts[0];
  __syncthreads();
  return count;
}

// Points with their pairs of totals.
template <bool Weighted, int Capacity>
struct PointList {
  std::int64_t index[Capacity];  // in the row
  double total_high[Capacity];
  double total_low[Capacity];
  double weight_high[Weighted ? Capacity : 1];
  double weight_low[Weighted ? Capacity : 1];
  std::uint16_t ordinal[Capacity];  // where its chunk lists it
  std::uint16_t order[Capacity];    // what is swept

  __device__ Point point(int i, double error, double weight_error) const {
    Point p{index[i], {{static_cast<double>(index[i]), 0.0}, 0.0}, {{total_high[i], total_low[i]}, error}};
    if constexpr (Weighted) p.weight = {{weight_high[i], weight_low[i]}, weight_error};
    return p;
  }
  __device__ void set(int i, std::int64_t at, DoubleDouble total, DoubleDouble weight, int place) {
    index[i] = at;
    total_high[i] = total.high;
    total_low[i] = total.low;
    if constexpr (Weighted) {
      weight_high[i] = weight.high;
      weight_low[i] = weight.low;
    }
    ordinal[i] = static_cast<std::uint16_t>(place);
  }
  // All points, in order; the whole block, in step afterwards once it sweeps.
  __device__ void number(int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock) order[i] = static_cast<std::uint16_t>(i);
  }
};

}  // namespace isofold::cuda
