// A tile of a scanned chunk against a polyline below which its vertices must lie.
#pragma once

#include <cstdint>

#include "cuda/sparse_chunk.cuh"

namespace isofold::cuda {

// A tile's floats in registers, all loads in flight at once; zeros beyond `count`. Whole pieces of 16 bytes
// are read where `followed` says that four more elements come after the tile; what stands before it in the
// first piece is read with it. Unaligned tiles are then shifted, by one and by two.
__device__ inline void load_tile(const float* from, int count, bool followed, float (&values)[kTile]) {
  const auto skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) / sizeof(float) % 4);
  if (count < kTile || (skew != 0 && !followed)) {
#pragma unroll
    for (int k = 0; k < kTile; ++k) values[k] = k < count ? from[k] : 0.0F;
    return;
  }
  float tail[4] = {};
  const float* at = from - skew;
#pragma unroll
  for (int k = 0; k < kTile; k += 4) {
    float four[4];
    load_four(at + k, four);
#pragma unroll
    for (int j = 0; j < 4; ++j) values[k + j] = four[j];
  }
  if (skew == 0) return;
  load_four(at + kTile, tail);
  const auto shift = [&](int by, bool wanted) {
#pragma unroll
    for (int k = 0; k < kTile + 4; ++k) {
      float& here = k < kTile ? values[k % kTile] : tail[k % 4];
      if (k + by < kTile + 4) {
        const float there = k + by < kTile ? values[(k + by) % kTile] : tail[(k + by) % 4];
        if (wanted) here = there;
      }
    }
  };
  shift(1, (skew & 1) != 0);
  shift(2, (skew & 2) != 0);
}

// A tile as the steps of the polyline and of the hull ask for it: floats in registers, other types where they
// are.
template <class E, int Tiles>
struct SparseTile {
  const SparseChunk<E, Tiles>& chunk;
  int number;
  int count;  // of its elements
  E row;      // from its start on
  float values[kPlainTiles<E> ? kTile : 1];

  __device__ SparseTile(const SparseChunk<E, Tiles>& of, int tile)
      : chunk(of),
        number(tile),
        count(min(kTile, of.length - tile * kTile)),
        row(of.row.from(of.origin + tile * kTile)) {
    if constexpr (kPlainTiles<E>) load_tile(row.values, count, (tile + 1) * kTile + 4 <= of.length, values);
  }
};

// A polyline over a tile: straight, or turning at one of its elements.
template <class E>
struct TileEdges {
  ChordSlope<E> left;
  ChordSlope<E> right;
  float gap;     // of the tile's start over it; -infinity: nothing is known
  float corner;  // of the point where it turns: 0, or -infinity
  int turn;      // which that is; kTile: none
};

// What a height over a polyline can be off by, for terms w (y - s) whose magnitudes sum to D, a gap G and
// slopes s. Floats form their terms in floats, as scan_float_tile does: 2^-18 (G + D + |s|), `size`. Others
// form them in doubles and sum in floats: 2^-18 (G + D), and what slopes are off by, 2^-50 of themselves over
// the tile and with weights what the chunk's abscissae make of them (coarse_polyline.cuh). What the gap is
// off by for the ordinates' sake comes on top.
template <class E, int Tiles>
__device__ float height_error(const SparseChunk<E, Tiles>& chunk, float size, double slope) {
  const auto general = static_cast<float>(0x1p-43 * chunk.facts.magnitude) + 0x1p-140F;
  if constexpr (kPlainTiles<E>) return size * 0x1p-18F + general;
  const double of_slope = fabs(slope) * (E::kWeighted ? chunk.width() * 0x1p-47 : kTile * 0x1p-49);
  return size * 0x1p-18F + general + static_cast<float>(of_slope);
}

// Calls visit(k, whether the values rise there, height over the polyline) for the points of a tile of pairs,
// and returns what a height can be off by.
template <bool Turns, class E, int Tiles, class Visit>
__device__ float walk_pairs(const SparseTile<E, Tiles>& tile, const TileEdges<E>& edges, Visit visit) {
  using Value = typename E::Value;
  using Weight = TrackedWeight<E>;
  const E& row = tile.row;
  float height = edges.gap;
  float size = fabsf(edges.gap);
  double previous = tile.number == 0 ? INFINITY : row.value(-1);
  const auto take = [&](int k, Value given, Weight weight) {
    const double value = row.sign * static_cast<double>(given);
    double term = value - (Turns && k >= edges.turn ? edges.right : edges.left);
    if constexpr (E::kWeighted) term *= static_cast<double>(weight);
    if (Turns && k == edges.turn) height = edges.corner;
    visit(k, previous < value, height);
    size += fabsf(static_cast<float>(term));
    height += static_cast<float>(term);
    previous = value;
  };
  const auto aligned = [](const void* at) { return reinterpret_cast<std::uintptr_t>(at) % 16 == 0; };
  if (tile.count == kTile && aligned(row.values) && (!E::kWeighted || aligned(row.weights))) {
#pragma unroll
    for (int k = 0; k < kTile; k += 4) {
      Value values[4];
      Weight weights[4] = {};
      load_four(row.values + k, values);
      if constexpr (E::kWeighted) load_four(row.weights + k, weights);
#pragma unroll
      for (int j = 0; j < 4; ++j) take(k + j, values[j], weights[j]);
    }
  } else {
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      const bool inside = k < tile.count;
      Weight weight{};
      if constexpr (E::kWeighted) weight = inside ? row.weights[k] : Weight{0};
      take(k, inside ? row.values[k] : Value{0}, weight);
    }
  }
  // A sum, so that a NaN stays one.
  return height_error(tile.chunk, size, fabs(edges.left) + (Turns ? fabs(edges.right) : 0.0));
}

// The lowest point of a tile over a straight polyline where the values rise, or -1 where none can be a
// vertex. Heights that are beyond floats say nothing: a NaN is as low as can be, and of infinities the first
// is taken.
template <class E, int Tiles>
__device__ int lowest_of_tile(const SparseTile<E, Tiles>& tile, ChordSlope<E> slope, float gap) {
  int at = -1;
  float lowest = NAN;
  float error;
  const auto visit = [&](int k, bool rises, float height) {
    if (rises && k < tile.count && !(height >= lowest)) {
      lowest = height;
      at = k;
    }
  };
  if constexpr (kPlainTiles<E>) {
    const auto direction = static_cast<float>(tile.row.sign);
    float previous = tile.number == 0 ? INFINITY : direction * tile.row.values[-1];
    float height = gap;
    float size = fabsf(slope) + fabsf(gap);
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      const float value = direction * tile.values[k];
      visit(k, previous < value, height);
      const float term = value - slope;
      size += fabsf(term);
      height += term;
      previous = value;
    }
    error = height_error(tile.chunk, size, 0.0);
  } else {
    error = walk_pairs<false>(tile, {slope, slope, gap, 0.0F, kTile}, visit);
  }
  return lowest > error ? -1 : at;
}

// A tile's points that can be vertices, as bits: where the values rise and the height over the polyline is
// not above what it can be off by. Terms right of the turn differ from those over the left slope by the
// slopes' difference.
template <class E, int Tiles>
__device__ std::uint32_t points_of_tile(const SparseTile<E, Tiles>& tile, const TileEdges<E>& edges) {
  std::uint32_t below = 0;
  std::uint32_t rising = 0;
  if constexpr (kPlainTiles<E>) {
    const auto direction = static_cast<float>(tile.row.sign);
    float size = fabsf(edges.left) + fabsf(edges.gap) + (kTile + 1) * fabsf(edges.right - edges.left);
#pragma unroll
    for (int k = 0; k < kTile; ++k) size += fabsf(__fmaf_rn(tile.values[k], direction, -edges.left));
    const float error = height_error(tile.chunk, size, 0.0);
    float previous = tile.number == 0 ? INFINITY : direction * tile.row.values[-1];
    float height = edges.gap;
    float slope = edges.left;
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      const float value = direction * tile.values[k];
      if (k == edges.turn) {
        height = edges.corner;
        slope = edges.right;
      }
      if (!(height > error)) below |= 1U << k;
      if (previous < value) rising |= 1U << k;
      previous = value;
      height += value - slope;
    }
  } else {
    float heights[kTile];
    const float error = walk_pairs<true>(tile, edges, [&](int k, bool rises, float height) {
      heights[k] = height;
      if (rises) rising |= 1U << k;
    });
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      if (!(heights[k] > error)) below |= 1U << k;
    }
  }
  const std::uint32_t inside = tile.count == kTile ? ~0U : (1U << tile.count) - 1U;
  return (below & rising & inside) | (tile.number == 0 ? 1U : 0U);
}

// Lists the tile's chosen points from place `place` on, with their totals.
template <class E, int Tiles>
__device__ void list_points(const SparseTile<E, Tiles>& tile, std::uint32_t chosen, int place) {
  const auto& chunk = tile.chunk;
  auto& points = chunk.scratch.points;
  const E& row = tile.row;
  DoubleDouble total = chunk.total_before(tile.number);
  if constexpr (kPlainTiles<E>) {
    const int first = place;
    double inside = 0;  // exact
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      if ((chosen >> k & 1U) != 0) {
        points.position[place] = static_cast<std::uint16_t>(tile.number * kTile + k);
        points.total_high[place] = inside;
        ++place;
      }
      inside += row.sign * static_cast<double>(tile.values[k]);
    }
#pragma unroll 1
    for (int i = first; i < place; ++i) {
      const DoubleDouble here = total + points.total_high[i];
      points.total_high[i] = here.high;
      points.total_low[i] = static_cast<float>(here.low);
    }
  } else {
    DoubleDouble weight = chunk.weight_before(tile.number);
    int k = 0;
#pragma unroll 1
    for (std::uint32_t left = chosen; left != 0; left &= left - 1) {
      const int next = __ffs(static_cast<int>(left)) - 1;
#pragma unroll 1
      for (; k < next; ++k) add_element<E>(row, k, total, weight);
      points.position[place] = static_cast<std::uint16_t>(tile.number * kTile + next);
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

}  // namespace isofold::cuda
