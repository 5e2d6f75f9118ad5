// A polyline through the lowest points of the tiles that dip below the coarse one. Where tile starts miss the
// diagram's low points by the noise of half a tile, these are nearly always its vertices: of a row of noise
// on a slope, 8,192 elements of 1e4, 180 tiles dip, 41 of their lowest points are corners, and 55 points are
// left of 880.
#pragma once

#include <cstdint>

#include "cuda/point_list.cuh"
#include "cuda/tile_points.cuh"

namespace isofold::cuda {

// Reduces the first `count` points to their hull, in points.order, and returns how many are left. Kept apart
// from where sums are pairs: calls in the loop cost registers.
template <class E, int Tiles>
ISOFOLD_DEVICE_OUT_OF_LINE int sweep_pairs(const SparseChunk<E, Tiles> chunk, int count) {
  return sweep_warp(chunk.scratch.points.order, count,
                    [&](int a, int b, int d) { return chunk.pair_vertex(a, b, d); });
}
template <class E, int Tiles>
__device__ int sweep_points(const SparseChunk<E, Tiles>& chunk, int count) {
  auto& points = chunk.scratch.points;
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32)
    points.order[i] = static_cast<std::uint16_t>(i);
  __syncwarp();
  if (!kPlainTiles<E> || !chunk.exact) return sweep_pairs(chunk, count);
  return sweep_warp(points.order, count, [&](int a, int b, int d) {
    return light_vertex({points.position[a], points.total_high[a]},
                        {points.position[b], points.total_high[b]},
                        {points.position[d], points.total_high[d]});
  });
}

// Lists the chunk's end as point `at`. One lane.
template <class E, int Tiles>
__device__ void list_end(const SparseChunk<E, Tiles>& chunk, int at) {
  auto& points = chunk.scratch.points;
  points.position[at] = static_cast<std::uint16_t>(chunk.length);
  points.total_high[at] = chunk.total.high;
  points.total_low[at] = static_cast<typename SparseScratch<E, Tiles>::Low>(chunk.total.low);
  if constexpr (E::kWeighted) {
    points.weight_high[at] = chunk.weight.high;
    points.weight_low[at] = chunk.weight.low;
  }
}

// Lists point k of a tile.
template <class E, int Tiles>
__device__ void list_point(const SparseTile<E, Tiles>& tile, int k, int place) {
  const auto& chunk = tile.chunk;
  auto& points = chunk.scratch.points;
  DoubleDouble total = chunk.total_before(tile.number);
  DoubleDouble weight = chunk.weight_before(tile.number);
  if constexpr (kPlainTiles<E>) {
    double inside = 0;  // exact
#pragma unroll
    for (int j = 0; j < kTile; ++j) inside += j < k ? static_cast<double>(tile.values[j]) : 0.0;
    total = total + tile.row.sign * inside;
  } else {
    for (int j = 0; j < k; ++j) add_element<E>(tile.row, j, total, weight);
  }
  points.position[place] = static_cast<std::uint16_t>(tile.number * kTile + k);
  points.total_high[place] = total.high;
  points.total_low[place] = static_cast<typename SparseScratch<E, Tiles>::Low>(total.low);
  if constexpr (E::kWeighted) {
    points.weight_high[place] = weight.high;
    points.weight_low[place] = weight.low;
  }
}

// Leaves the fine polyline's corners in points.order, from the chunk's start to its end, and returns how many
// they are. Of the `alive` tiles of scratch.alive it keeps those that dip. Any points of the diagram will do,
// so what finds no place is left out.
template <class E, int Tiles>
__device__ int find_corners(const SparseChunk<E, Tiles>& chunk, int& alive) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& scratch = chunk.scratch;
  constexpr unsigned kAll = 0xffffffffU;
  const unsigned before = (1U << lane) - 1U;
  if (lane == 0) {
    auto& points = scratch.points;
    points.position[0] = 0;
    points.total_high[0] = 0;
    points.total_low[0] = 0;
    if constexpr (E::kWeighted) {
      points.weight_high[0] = 0;
      points.weight_low[0] = 0;
    }
  }
  int count = 1;
  int dipping = 0;
#pragma unroll 1
  for (int first = 0; first < alive; first += 32) {
    const bool mine = first + lane < alive;
    const SparseTile<E, Tiles> tile(chunk, scratch.alive[mine ? first + lane : 0]);
    const int lowest =
        mine ? lowest_of_tile(tile, scratch.slope_over(chunk, tile.number), scratch.depth[tile.number]) : -1;
    const bool dips = mine && (lowest >= 0 || tile.number == 0);
    const unsigned dip = __ballot_sync(kAll, dips);
    __syncwarp();  // all have read their tiles' numbers
    if (dips) scratch.alive[dipping + __popc(dip & before)] = static_cast<std::uint8_t>(tile.number);
    dipping += __popc(dip);
    const bool lists = lowest > 0 || (lowest == 0 && tile.number > 0);
    const unsigned listed = __ballot_sync(kAll, lists);
    const int place = count + __popc(listed & before);
    if (lists && place < kSparsePoints - 1) list_point(tile, lowest, place);
    count = min(count + __popc(listed), kSparsePoints - 1);
    __syncwarp();
  }
  alive = dipping;
  if (lane == 0) list_end(chunk, count);
  __syncwarp();
  const int corners = sweep_points(chunk, count + 1);
  if (chunk.rough && lane == 0) scratch.unsure = false;
  return corners;
}

// The fine polyline over a tile, of which at most one corner is a point other than its start. Ordinates are
// formed and off as in coarse_polyline.cuh.
template <class E, int Tiles>
__device__ TileEdges<E> edges_over(const SparseChunk<E, Tiles>& chunk, int tile, int corners) {
  const auto& points = chunk.scratch.points;
  const double slope = chunk.total.high / chunk.width();
  const auto position = [&](int i) { return static_cast<int>(points.position[points.order[i]]); };
  const auto abscissa = [&](int i) {
    if constexpr (E::kWeighted) return points.weight_high[points.order[i]];
    return static_cast<double>(position(i));
  };
  const auto ordinate = [&](int i) { return points.total_high[points.order[i]] - slope * abscissa(i); };
  // The last corner at or before the tile's start.
  int corner = 0;
  for (int end = corners - 1; end - corner > 1;) {
    const int middle = (corner + end) / 2;
    (position(middle) <= tile * kTile ? corner : end) = middle;
  }
  const auto narrow = [&](int i) {
    return E::kWeighted && !(abscissa(i + 1) - abscissa(i) > 0x1p-40 * chunk.width());
  };
  const auto edge = [&](int i) { return (ordinate(i + 1) - ordinate(i)) / (abscissa(i + 1) - abscissa(i)); };
  const double left = edge(corner);
  const double x = chunk.weight_before(tile).high;
  const double gap =
      (chunk.total_before(tile).high - slope * x) - (ordinate(corner) + left * (x - abscissa(corner)));
  TileEdges<E> edges;
  edges.left = static_cast<ChordSlope<E>>(slope + left);
  edges.right = edges.left;
  edges.gap = narrow(corner) ? -INFINITY : static_cast<float>(gap);
  edges.corner = 0;
  edges.turn = kTile;
  const int next = corner + 1;
  if (next < corners - 1 && position(next) < (tile + 1) * kTile) {
    edges.turn = position(next) - tile * kTile;
    edges.right = static_cast<ChordSlope<E>>(slope + edge(next));
    edges.corner = narrow(next) ? -INFINITY : 0.0F;
  }
  return edges;
}

// Chooses the points of the `alive` tiles that can be vertices: leaves them as a mask a tile in
// scratch.chosen(), keeps the tiles that have some, and returns how many these are.
template <class E, int Tiles>
__device__ int choose_points(const SparseChunk<E, Tiles>& chunk, int alive, int corners) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& scratch = chunk.scratch;
  int kept = 0;
#pragma unroll 1
  for (int first = 0; first < alive; first += 32) {
    const bool mine = first + lane < alive;
    const SparseTile<E, Tiles> tile(chunk, scratch.alive[mine ? first + lane : 0]);
    const std::uint32_t chosen = mine ? points_of_tile(tile, edges_over(chunk, tile.number, corners)) : 0U;
    const unsigned some = __ballot_sync(0xffffffffU, chosen != 0);
    __syncwarp();
    if (chosen != 0) {
      scratch.alive[kept + __popc(some & ((1U << lane) - 1U))] = static_cast<std::uint8_t>(tile.number);
      scratch.chosen()[tile.number] = chosen;
    }
    kept += __popc(some);
    __syncwarp();
  }
  return kept;
}

}  // namespace isofold::cuda
