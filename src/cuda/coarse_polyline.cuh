// Which tiles of a scanned chunk can hold a vertex: those that can dip below a coarse polyline through tile
// starts.
#pragma once

#include <cstdint>

#include "cuda/sparse_chunk.cuh"

namespace isofold::cuda {

inline constexpr int kManyAlive = 64;  // tiles above which a better polyline pays

// What a height over a chord can be off by for the abscissae's sake; `width` is the chunk's.
template <class E>
__device__ double abscissa_error(double slope, double width) {
  return E::kWeighted ? fabs(slope) * width * 0x1p-48 : 0.0;
}

// Finds the tiles that can hold a vertex, lists them in scratch.alive and returns how many they are; leaves
// the gap of every tile start over the polyline in `depth`, and the slopes over each lane's tiles.
//
// A point on or above a chord between two points of the diagram, its abscissa strictly between theirs, is no
// vertex; any chord will do, so the polyline may be chosen in floats and roughly. It has at most a vertex a
// lane, the lowest of the lane's tile starts: over the chord from the chunk's start to its end, and where
// that leaves many tiles, once more over the polyline itself. Heights are taken over the first chord, which
// cancels what is large. With M = sum |w y|, every ordinate below is at most 4 M and formed in fewer than
// eight roundings from totals off by at most 2^-52 M: 2^-45 M is more than it can be off. Weighted abscissae
// are off by 2^-52 of the chunk's width W, which a chord of slope a makes 2^-52 |a| W in height at either of
// its ends and at the point: abscissa_error has four times as much. Chords narrower than 2^-40 W, whose slope
// may be nothing at all, are not used. Tests read !(height > threshold), so that a NaN keeps the tile.
template <class E, int Tiles>
__device__ int list_alive_tiles(const SparseChunk<E, Tiles>& chunk) {
  constexpr int kALane = Tiles / 32;
  constexpr unsigned kAll = 0xffffffffU;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int tiles = chunk.tiles();
  const int a_lane = chunk.tiles_a_lane();
  auto& scratch = chunk.scratch;
  const double width = chunk.width();
  const double slope = chunk.total.high / width;
  const double threshold = 0x1p-43 * chunk.facts.magnitude + 0x1p-1000;
  const int begin = a_lane * lane;
  const int own = min(a_lane, tiles - begin);
  const int lanes = (tiles + a_lane - 1) / a_lane;
  const auto abscissa = [&](int t) { return chunk.weight_before(t).high; };
  const auto height = [&](int t) { return chunk.total_before(t).high - slope * abscissa(t); };
  double gap[kALane];
#pragma unroll
  for (int i = 0; i < kALane; ++i) gap[i] = i < own ? height(begin + i) : 0.0;
  std::uint32_t alive = 0;
#pragma unroll 1
  for (int round = 0;; ++round) {
    // The lane's lowest tile start; the chunk's start for lane 0.
    int vertex_tile = min(begin, tiles - 1);
    double lowest = gap[0];
#pragma unroll
    for (int i = 1; i < kALane; ++i) {
      if (lane > 0 && i < own && gap[i] < lowest) {
        lowest = gap[i];
        vertex_tile = begin + i;
      }
    }
    const double vertex_x = abscissa(vertex_tile);
    const double vertex_q = height(vertex_tile);
    const auto xf = static_cast<float>(vertex_x);
    const auto qf = static_cast<float>(vertex_q);
    float steepest_left = -INFINITY;
    float flattest_right = __fdividef(-qf, static_cast<float>(width) - xf);  // to the chunk's end
#pragma unroll 8
    for (int i = 1; i < 32; ++i) {
      const int other = (lane + i) & 31;
      const float between = __fdividef(__shfl_sync(kAll, qf, other) - qf, __shfl_sync(kAll, xf, other) - xf);
      if (other < lane) {
        steepest_left = fmaxf(steepest_left, between);
      } else if (other < lanes) {
        flattest_right = fminf(flattest_right, between);
      }
    }
    const bool vertex = lane == 0 || (lane < lanes && steepest_left < flattest_right);
    const unsigned vertices = __ballot_sync(kAll, vertex);

    // The edge that leaves each vertex, and those over this lane's tiles.
    const unsigned later = lane == 31 ? 0U : vertices & (~0U << (lane + 1));
    const int next = later == 0 ? lane : __ffs(static_cast<int>(later)) - 1;
    double next_x = __shfl_sync(kAll, vertex_x, next);
    double next_q = __shfl_sync(kAll, vertex_q, next);
    if (later == 0) {
      next_x = width;
      next_q = 0;
    }
    const double edge = (next_q - vertex_q) / (next_x - vertex_x);
    const unsigned earlier = vertices & ((1U << lane) - 1U);
    const int previous = earlier == 0 ? 0 : 31 - __clz(static_cast<int>(earlier));
    const double left_x = __shfl_sync(kAll, vertex_x, previous);
    const double left_q = __shfl_sync(kAll, vertex_q, previous);
    const double left_edge = __shfl_sync(kAll, edge, previous);
    const bool narrow = E::kWeighted && !(next_x - vertex_x > 0x1p-40 * width);
    const bool left_narrow = E::kWeighted && __shfl_sync(kAll, narrow ? 1 : 0, previous) != 0;
    const int turning = vertex ? vertex_tile : begin + a_lane;  // the first tile under the right edge
#pragma unroll
    for (int i = 0; i < kALane; ++i) {
      if (i >= own) continue;
      const bool right = begin + i >= turning;
      gap[i] = height(begin + i) -
               ((right ? vertex_q : left_q) +
                (right ? edge : left_edge) * (abscissa(begin + i) - (right ? vertex_x : left_x)));
      if (right ? narrow : left_narrow) gap[i] = -INFINITY;
    }
    const double end_gap = __shfl_down_sync(kAll, gap[0], 1);
    // Of both edges: a tile's start and end may lie under either.
    const double error =
        threshold + abscissa_error<E>(slope + edge, width) + abscissa_error<E>(slope + left_edge, width);
    alive = 0;
#pragma unroll
    for (int i = 0; i < kALane; ++i) {
      if (i >= own) continue;
      const int t = begin + i;
      const double after = t + 1 == tiles ? 0.0 : (i + 1 < a_lane ? gap[(i + 1) % kALane] : end_gap);
      if (!(fmin(gap[i], after) > static_cast<double>(scratch.depth[t]) + error)) alive |= 1U << i;
    }
    scratch.left_slope[lane] = static_cast<ChordSlope<E>>(slope + left_edge);
    scratch.right_slope[lane] = static_cast<ChordSlope<E>>(slope + edge);
    scratch.vertex[lane] = static_cast<std::uint8_t>(turning - begin);
    if (round == 1 || warp_sum(__popc(alive)) <= kManyAlive) break;
  }
  const Team<32> team{nullptr};
  const auto places = team.scan(__popc(alive));
  int place = places.before;
  for (std::uint32_t left = alive; left != 0; left &= left - 1) {
    scratch.alive[place++] = static_cast<std::uint8_t>(begin + __ffs(static_cast<int>(left)) - 1);
  }
#pragma unroll
  for (int i = 0; i < kALane; ++i) {
    if (i < own) scratch.depth[begin + i] = static_cast<float>(gap[i]);
  }
  __syncwarp();
  return places.all;
}

}  // namespace isofold::cuda
