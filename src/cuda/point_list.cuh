// The hull of a list of points by sweeps: every inner point that is not strictly below the chord of its two
// neighbours dies, all at once, until none does. Each death is right whatever the neighbours' fate, so the
// order does not matter, and the last list bends up at every point: it is the hull.
//
// What is swept is a list of point numbers in shared memory; the points stay where they are.
#pragma once

#include <cstdint>

#include "cuda/certified.cuh"
#include "cuda/team.cuh"
#include "geometry/turn.hpp"

namespace isofold::cuda {

// Drops the numbers i of `order` for which keep(i) is false, and returns how many are left. One warp. A round
// compacts 32 numbers towards the front, so it never writes where a later round has yet to read; `keep` sees
// the list as it stands, whose front is compacted already.
template <class Keep>
__device__ int compact_warp(std::uint16_t* order, int count, Keep keep) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  int left = 0;
  for (int first = 0; first < count; first += 32) {
    const int i = first + lane;
    const std::uint16_t mine = i < count ? order[i] : std::uint16_t{0};
    const bool stays = i < count && keep(i);
    const unsigned alive = __ballot_sync(0xffffffffU, stays);
    __syncwarp();
    if (stays) order[left + __popc(alive & ((1U << lane) - 1U))] = mine;
    left += __popc(alive);
    __syncwarp();
  }
  return left;
}

// Reduces `order`, the numbers of `count` points from left to right, to the hull's, and returns how many are
// left. One warp. `is_vertex(a, b, d)` takes numbers.
//
// Every other sweep tries chords of many widths, which few points that are no vertices survive; the others
// try the chord of the neighbours. Whatever stands further left in a list whose front is compacted already is
// a point of the diagram further left.
template <class IsVertex>
__device__ int sweep_warp(std::uint16_t* order, int count, IsVertex is_vertex) {
  for (bool wide = true;; wide = !wide) {
    const int widest = wide ? count / 2 : 1;
    const int left = compact_warp(order, count, [&](int i) {
      bool stays = true;
      if (i > 0 && i < count - 1) {
        const std::uint16_t mine = order[i];
        for (int width = 1; width <= widest && stays; width *= 4) {
          stays = is_vertex(order[max(i - width, 0)], mine, order[min(i + width, count - 1)]);
        }
      }
      return stays;
    });
    if (left == count) return count;
    count = left;
  }
}

// Drops the numbers i of `order` for which keep(i) is false, and returns how many are left. The whole block,
// in step before; `counts`: shared, one entry a warp and round.
template <int Capacity, class Keep>
__device__ int compact_block(std::uint16_t* order, int count, int* counts, Keep keep) {
  static_assert(Capacity / kBlock <= 32);
  constexpr int kWarps = kBlock / 32;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  std::uint32_t stays = 0;  // bit r: number r * kBlock + thread
  const int rounds = (count + kBlock - 1) / kBlock;
  bool dropped = false;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    const int i = r * kBlock + thread;
    const bool kept = i < count && keep(i);
    dropped = dropped || (i < count && !kept);
    if (kept) stays |= 1U << r;
    const unsigned ballot = __ballot_sync(0xffffffffU, kept);
    if (lane == 0) counts[r * kWarps + warp] = __popc(ballot);
  }
  if (__syncthreads_or(static_cast<int>(dropped)) == 0) return count;
  // A round's numbers move to the front, never past its own start: each is read before it can be overwritten.
  int left = 0;
#pragma unroll 1
  for (int r = 0; r < rounds; ++r) {
    const bool kept = (stays >> r & 1U) != 0;
    const std::uint16_t mine = kept ? order[r * kBlock + thread] : std::uint16_t{0};
    const unsigned ballot = __ballot_sync(0xffffffffU, kept);
    int place = left;
    for (int w = 0; w < kWarps; ++w) {
      if (w < warp) place += counts[r * kWarps + w];
      left += counts[r * kWarps + w];
    }
    __syncthreads();
    if (kept) order[place + __popc(ballot & ((1U << lane) - 1U))] = mine;
  }
  __syncthreads();
  return left;
}

// sweep_warp by the whole block, which one warp relieves once no more than `few` are left. `wide`: whether
// the first sweep tries many chords.
template <int Capacity, class IsVertex>
__device__ int sweep_block(std::uint16_t* order, int count, int few, int* counts, IsVertex is_vertex,
                           bool wide = true) {
  __syncthreads();
  for (; count > few; wide = !wide) {
    const int widest = wide ? count / 2 : 1;
    const int left = compact_block<Capacity>(order, count, counts, [&](int i) {
      bool stays = true;
      if (i > 0 && i < count - 1) {
        for (int width = 1; width <= widest && stays; width *= 4) {
          stays = is_vertex(order[max(i - width, 0)], order[i], order[min(i + width, count - 1)]);
        }
      }
      return stays;
    });
    if (left == count) return count;
    count = left;
  }
  if (threadIdx.x < 32) {
    count = sweep_warp(order, count, is_vertex);
    if (threadIdx.x == 0) counts[0] = count;
  }
  __syncthreads();
  count = counts[0];
  __syncthreads();
  return count;
}

// What is known of the sums over what a list spans.
struct SpanFacts {
  double magnitude;  // sum of |w y|
  double weight_magnitude;
  double error;  // of the pairs of totals
  double weight_error;
};

// The turn from differences of high parts alone, for a tenth of the work: decides nearly always. A high part
// is off by 2^-53 of the sums of magnitudes M and W over what the list spans, and by the pairs' own errors,
// which are not relative to M where products underflow. The formula is that of turn.hpp.
template <bool Weighted>
__device__ Turn quick_turn(double w_ab, double s_ab, double w_bd, double s_bd, const SpanFacts& facts) {
  const double s_error = 0x1p-51 * facts.magnitude + 2 * facts.error;
  const double rise = w_ab * s_bd;
  const double fall = s_ab * w_bd;
  double error = s_error * (w_ab + w_bd) + 2 * kUnitRoundoff * (fabs(rise) + fabs(fall));
  if constexpr (Weighted) {
    const double w_error = 0x1p-51 * facts.weight_magnitude + 2 * facts.weight_error;
    error += w_error * (fabs(s_ab) + fabs(s_bd)) + 2 * s_error * w_error;
  }
  const double bound = 2 * error + 0x1p-1070;
  const double determinant = rise - fall;
  if constexpr (!kCertified) return determinant > 0 ? Turn::up : Turn::down_or_straight;
  if (determinant > bound) return Turn::up;
  if (determinant < -bound) return Turn::down_or_straight;
  return Turn::undecided;
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
  __device__ Turn quick_turn(int a, int b, int d, const SpanFacts& facts) const {
    double w_ab = static_cast<double>(index[b] - index[a]);
    double w_bd = static_cast<double>(index[d] - index[b]);
    if constexpr (Weighted) {
      w_ab = weight_high[b] - weight_high[a];
      w_bd = weight_high[d] - weight_high[b];
    }
    return isofold::cuda::quick_turn<Weighted>(w_ab, total_high[b] - total_high[a], w_bd,
                                               total_high[d] - total_high[b], facts);
  }
  // All points, in order; the whole block, in step afterwards once it sweeps.
  __device__ void number(int count) {
    for (int i = static_cast<int>(threadIdx.x); i < count; i += kBlock)
      order[i] = static_cast<std::uint16_t>(i);
  }
};

}  // namespace isofold::cuda
