// The hull of a list of points by sweeps: every inner point that is not strictly below the chord of its two
// neighbours dies, all at once, until none does. Each death is right whatever the neighbours' fate, so the
// order does not matter, and the last list bends up at every point: it is the hull.
#pragma once

#include <cstdint>

#include "cuda/team.cuh"
#include "geometry/point.hpp"

namespace isofold::cuda {

template <bool Weighted, int Capacity>
struct PointList {
  static constexpr int kCapacity = Capacity;
  std::int64_t index[Capacity];  // in the row
  double total_high[Capacity];
  double total_low[Capacity];
  double weight_high[Weighted ? Capacity : 1];
  double weight_low[Weighted ? Capacity : 1];
  std::uint16_t ordinal[Capacity];  // where its chunk lists it

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
};

// Reduces the first `count` points, in order, to their hull; the whole block takes part. `dies(i)` judges
// point i by its neighbours. Returns the number left.
template <class List, class Dies>
__device__ int sweep_to_hull(List& list, int count, int* shared_counts, Dies dies) {
  constexpr int kRounds = (List::kCapacity + kBlock - 1) / kBlock;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  constexpr int kWarps = kBlock / 32;
  for (;;) {
    std::uint32_t stays = 0;  // bit r: point r * kBlock + thread
    int died = 0;
    const int rounds = (count + kBlock - 1) / kBlock;
#pragma unroll 1
    for (int r = 0; r < rounds; ++r) {
      const int i = r * kBlock + thread;
      const bool alive = i < count && (i == 0 || i == count - 1 || !dies(i));
      if (i < count && !alive) died = 1;
      if (alive) stays |= 1U << r;
      const unsigned ballot = __ballot_sync(0xffffffffU, alive);
      if (lane == 0) shared_counts[r * kWarps + warp] = __popc(ballot);
    }
    if (!__syncthreads_or(died)) return count;
    // Compact in place: every thread reads its points before any writes.
    std::int64_t index[kRounds];
    double total_high[kRounds];
    double total_low[kRounds];
    double weight_high[kRounds];
    double weight_low[kRounds];
    std::uint16_t ordinal[kRounds];
    int target[kRounds];
    int left = 0;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      if (r >= rounds) break;
      int before = left;
      for (int w = 0; w < kWarps; ++w) {
        const int n = shared_counts[r * kWarps + w];
        if (w < warp) before += n;
        left += n;
      }
      const bool alive = (stays >> r & 1U) != 0;
      const unsigned ballot = __ballot_sync(0xffffffffU, alive);
      target[r] = before + __popc(ballot & ((1U << lane) - 1U));
      if (alive) {
        const int i = r * kBlock + thread;
        index[r] = list.index[i];
        total_high[r] = list.total_high[i];
        total_low[r] = list.total_low[i];
        if (sizeof(list.weight_high) > sizeof(double)) {
          weight_high[r] = list.weight_high[i];
          weight_low[r] = list.weight_low[i];
        }
        ordinal[r] = list.ordinal[i];
      }
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      if (r >= rounds) break;
      if ((stays >> r & 1U) == 0) continue;
      const int i = target[r];
      list.index[i] = index[r];
      list.total_high[i] = total_high[r];
      list.total_low[i] = total_low[r];
      if (sizeof(list.weight_high) > sizeof(double)) {
        list.weight_high[i] = weight_high[r];
        list.weight_low[i] = weight_low[r];
      }
      list.ordinal[i] = ordinal[r];
    }
    count = left;
    __syncthreads();
  }
}

}  // namespace isofold::cuda
