// The hull of a scanned chunk, by one warp, where few points can be vertices: the points of its alive tiles
// that dip below the polyline, and sweeps over those.
#pragma once

#include <cstdint>

#include "cuda/coarse_polyline.cuh"
#include "cuda/point_list.cuh"

namespace isofold::cuda {

// A tile's elements: floats in registers, all in flight at once; other types where they are.
template <class E>
struct TileElements {
  E row;  // from the tile's start on
  int count;
  float values[kPlainTiles<E> ? kTile : 1];

  __device__ TileElements(const E& chunk_row, std::int64_t first, int length)
      : row(chunk_row.from(first)), count(length) {
    if constexpr (kPlainTiles<E>) {
      if (count == kTile && reinterpret_cast<std::uintptr_t>(row.values) % 16 == 0) {
#pragma unroll
        for (int k = 0; k < kTile; k += 4) {
          const float4 four = *reinterpret_cast<const float4*>(row.values + k);
          values[k] = four.x;
          values[k + 1] = four.y;
          values[k + 2] = four.z;
          values[k + 3] = four.w;
        }
      } else {
#pragma unroll
        for (int k = 0; k < kTile; ++k) values[k] = k < count ? row.values[k] : 0.0F;
      }
    }
  }
};

// A tile's points that can be vertices, as bits: where the values rise and the height over the polyline,
// running from the gap at the tile's start, is not above what it can be off by. For floats as in
// scan_float_tile, with the gap among the terms: 2^-18 (G + D + |s|) for D = sum |y - s|, s the polyline's
// slope, G the gap. For pairs terms are formed in doubles and run in floats: 2^-18 (G + D) and 2^-50 |s| W,
// and what weighted abscissae add.
template <class E>
__device__ std::uint32_t points_of_tile(const SparseChunk<E>& chunk, int tile,
                                        const TileElements<E>& elements) {
  const auto& scratch = chunk.scratch;
  const E& row = elements.row;
  const int count = elements.count;
  const int lane = tile / chunk.tiles_a_lane();
  const bool left = tile - lane * chunk.tiles_a_lane() < scratch.vertex[lane];
  const auto slope = left ? scratch.left_slope[lane] : scratch.right_slope[lane];
  const float gap = scratch.depth[tile];
  const auto general = static_cast<float>(0x1p-43 * chunk.facts.magnitude) + 0x1p-140F;
  std::uint32_t below = 0;
  std::uint32_t rising = 0;
  float height = gap;
  if constexpr (kPlainTiles<E>) {
    const auto direction = static_cast<float>(row.sign);
    const auto& values = elements.values;
    float size = fabsf(slope) + fabsf(gap);
#pragma unroll
    for (int k = 0; k < kTile; ++k) size += fabsf(__fmaf_rn(values[k], direction, -slope));
    const float threshold = size * 0x1p-18F + general;
    float previous = tile == 0 ? INFINITY : direction * row.values[-1];
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      const float value = direction * values[k];
      if (!(height > threshold)) below |= 1U << k;
      if (previous < value) rising |= 1U << k;
      previous = value;
      height += value - slope;
    }
  } else {
    const auto term = [&](int k) { return static_cast<float>(row.weight(k) * (row.value(k) - slope)); };
    float size = fabsf(gap);
    double width = 0;
    for (int k = 0; k < count; ++k) {
      size += fabsf(term(k));
      width += row.weight(k);
    }
    const float threshold =
        size * 0x1p-18F + general +
        static_cast<float>(fabs(slope) * width * 0x1p-50 + abscissa_error<E>(slope, chunk.width()));
    double previous = tile == 0 ? INFINITY : row.value(-1);
    for (int k = 0; k < count; ++k) {
      const double value = row.value(k);
      if (!(height > threshold)) below |= 1U << k;
      if (previous < value) rising |= 1U << k;
      previous = value;
      height += term(k);
    }
  }
  const std::uint32_t inside = count == kTile ? ~0U : (1U << count) - 1U;
  return (below & rising & inside) | (tile == 0 ? 1U : 0U);
}

// Lists the tile's chosen points from place `place` on, with their totals.
template <class E>
__device__ void list_points(const SparseChunk<E>& chunk, int tile, const TileElements<E>& elements,
                            std::uint32_t chosen, int place) {
  auto& points = chunk.scratch.points;
  const E& row = elements.row;
  DoubleDouble total = chunk.total_before(tile);
  if constexpr (kPlainTiles<E>) {
    const int first = place;
    double inside = 0;  // exact
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      if ((chosen >> k & 1U) != 0) {
        points.position[place] = static_cast<std::uint16_t>(tile * kTile + k);
        points.total_high[place] = inside;
        ++place;
      }
      inside += row.sign * static_cast<double>(elements.values[k]);
    }
#pragma unroll 1
    for (int i = first; i < place; ++i) {
      const DoubleDouble here = total + points.total_high[i];
      points.total_high[i] = here.high;
      points.total_low[i] = static_cast<float>(here.low);
    }
  } else {
    DoubleDouble weight = chunk.weight_before(tile);
    int k = 0;
#pragma unroll 1
    for (std::uint32_t left = chosen; left != 0; left &= left - 1) {
      const int next = __ffs(static_cast<int>(left)) - 1;
#pragma unroll 1
      for (; k < next; ++k) add_element<E>(row, k, total, weight);
      points.position[place] = static_cast<std::uint16_t>(tile * kTile + next);
      points.total_high[place] = total.high;
      points.total_low[place] = total.low;
      if constexpr (E::kWeighted) {
        points.weight_high[place] = weight.high;
        points.weight_low[place] = weight.low;
      }
      ++place;
    }
  }
}

// Reduces the first `count` points to their hull, in points.order, and returns how many are left. Kept apart
// from where sums are pairs: calls in the loop cost registers.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE int sweep_pairs(const SparseChunk<E> chunk, int count) {
  return sweep_warp(chunk.scratch.points.order, count,
                    [&](int a, int b, int d) { return chunk.pair_vertex(a, b, d); });
}
template <class E>
__device__ int sweep_points(const SparseChunk<E>& chunk, int count) {
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

// Moves the first `count` points in order to the front, in place: none moves back.
template <class E>
__device__ void pack_points(const SparseChunk<E>& chunk, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& points = chunk.scratch.points;
  const auto move = [&](auto* array) {
    for (int first = 0; first < count; first += 32) {
      const int i = min(first + lane, count - 1);
      const auto here = array[points.order[i]];
      __syncwarp();
      array[i] = here;
      __syncwarp();
    }
  };
  move(points.total_high);
  move(points.total_low);
  if constexpr (E::kWeighted) {
    move(points.weight_high);
    move(points.weight_low);
  }
  move(points.position);
}

// Lists the chunk's vertices and then its end in points.order, and returns how many these are; 0 where more
// points than fit could be vertices. What is listed is thinned to its hull whenever it fills up, and at the
// end.
template <class E>
__device__ int find_sparse_hull(SparseChunk<E>& chunk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& scratch = chunk.scratch;
  auto& points = scratch.points;
  const Team<32> team{nullptr};
  sum_before_tiles(chunk);
  const int alive = list_alive_tiles(chunk);
  int count = 0;
  int thinned = -1;  // what the last thinning left
  for (int first = 0;;) {
    const bool done = first >= alive;
    if (!done) {
      const bool mine = first + lane < alive;
      const int tile = scratch.alive[mine ? first + lane : 0];
      const TileElements<E> elements(chunk.row, chunk.origin + tile * kTile,
                                     min(kTile, chunk.length - tile * kTile));
      const std::uint32_t chosen = mine ? points_of_tile(chunk, tile, elements) : 0U;
      const auto places = team.scan(__popc(chosen));
      // As many tiles as fit, one place left for the end.
      const bool fits = count + places.before + __popc(chosen) < kSparsePoints;
      const unsigned fitting = __ballot_sync(0xffffffffU, fits);
      if (fits && chosen != 0) list_points(chunk, tile, elements, chosen, count + places.before);
      const int taken = __popc(fitting);
      const int listed = __shfl_sync(0xffffffffU, places.before + __popc(chosen), max(taken - 1, 0));
      if (taken > 0) count += listed;
      first += taken;
      __syncwarp();
      if (taken == 32 || first >= alive) continue;
      if (taken == 0 && count == thinned) return 0;  // full, and thinning does not help
    } else {
      if (lane == 0) {
        points.position[count] = static_cast<std::uint16_t>(chunk.length);
        points.total_high[count] = chunk.total.high;
        points.total_low[count] = static_cast<typename SparseScratch<E>::Low>(chunk.total.low);
        if constexpr (E::kWeighted) {
          points.weight_high[count] = chunk.weight.high;
          points.weight_low[count] = chunk.weight.low;
        }
      }
      ++count;
    }
    count = sweep_points(chunk, count);
    if (chunk.rough && scratch.unsure) return 0;
    if (done) return count;
    pack_points(chunk, count);
    thinned = count;
  }
}

}  // namespace isofold::cuda
