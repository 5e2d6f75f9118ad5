// A scanned chunk as the warp that filters it sees it: the sums of its tiles, candidates with their totals,
// and what is known of the numbers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/exact_totals.cuh"
#include "cuda/point_list.cuh"
#include "cuda/scan.cuh"

namespace isofold::cuda {

inline constexpr int kSparsePoints = 256;  // candidates that a warp can hold

// A tile's place in an array that lanes read eight neighbouring tiles of: one slot of padding for eight.
__device__ inline int padded(int tile) { return tile + (tile >> 3); }

// Candidates with their totals.
template <class E>
struct alignas(16) SparsePoints {
  // 256 tiles whose sums are exact in 53 bits leave at most 8 bits in the low part of a pair.
  using Low = std::conditional_t<kPlainTiles<E>, float, double>;
  double total_high[kSparsePoints];
  double weight_high[E::kWeighted ? kSparsePoints : 1];
  double weight_low[E::kWeighted ? kSparsePoints : 1];
  Low total_low[kSparsePoints];
  std::uint16_t position[kSparsePoints];
  std::uint16_t order[kSparsePoints];
};

template <class E>
using ChordSlope = std::conditional_t<kPlainTiles<E>, float, double>;

// Shared memory of a warp that filters.
template <class E, int Tiles>
struct alignas(16) SparseScratch {
  static constexpr int kSums = Tiles + Tiles / 8;
  using Low = typename SparsePoints<E>::Low;
  using Slope = ChordSlope<E>;
  // Of the tile, later before it; at last values of edges.
  double total_high[std::max(kSums, kSparsePoints)];
  double weight_high[E::kWeighted ? kSums : 1];
  double weight_low[E::kWeighted ? kSums : 1];
  Low total_low[kSums];
  Slope left_slope[32];  // over the tiles before and after the vertex of a lane's tiles
  Slope right_slope[32];
  float depth[Tiles];         // later the gap between tile start and polyline
  std::uint8_t alive[Tiles];  // tiles that may hold vertices
  std::uint8_t vertex[32];    // the first of the lane's tiles under the right edge
  bool unsure;                // a turn could not be decided (rough chunks only)
  SparsePoints<E> points;

  __device__ void set_tile(int number, const TileScan<E>& tile) {
    total_high[padded(number)] = tile.total.high;
    if constexpr (!kPlainTiles<E>) total_low[padded(number)] = tile.total.low;
    if constexpr (E::kWeighted) {
      weight_high[padded(number)] = tile.weight.high;
      weight_low[padded(number)] = tile.weight.low;
    }
    depth[number] = tile.depth;
  }
  // The coarse polyline's slope over a tile.
  template <class Chunk>
  __device__ Slope slope_over(const Chunk& chunk, int tile) const {
    const int lane = tile / chunk.tiles_a_lane();
    return tile - lane * chunk.tiles_a_lane() < vertex[lane] ? left_slope[lane] : right_slope[lane];
  }
  // A tile's points that can be vertices, once nobody asks for gaps.
  __device__ std::uint32_t* chosen() { return reinterpret_cast<std::uint32_t*>(depth); }
};

// A chunk between its scan and its hull, as one warp sees it.
template <class E, int Tiles>
struct SparseChunk {
  SparseScratch<E, Tiles>& scratch;
  E row;
  std::int64_t origin;
  int length;
  ScanFacts facts;
  bool exact = false;     // sums are exact as doubles
  bool rough = false;     // not even those of tiles are: what is summed is off by `error`
  DoubleDouble total{};   // of the chunk
  DoubleDouble weight{};  // weighted only
  double error = 0.0;     // of the pairs of running totals of w y
  double weight_error = 0.0;

  __device__ int tiles() const { return (length + kTile - 1) / kTile; }
  __device__ int tiles_a_lane() const {
    if constexpr (Tiles == 32) return 1;
    return (tiles() + 31) / 32;
  }
  __device__ DoubleDouble total_before(int tile) const {
    return {scratch.total_high[padded(tile)], scratch.total_low[padded(tile)]};
  }
  __device__ DoubleDouble weight_before(int tile) const {
    if constexpr (E::kWeighted) {
      return {scratch.weight_high[padded(tile)], scratch.weight_low[padded(tile)]};
    }
    return {static_cast<double>(tile * kTile), 0.0};
  }
  __device__ double width() const { return E::kWeighted ? weight.high : static_cast<double>(length); }
  __device__ Point point(int i) const {
    const auto& points = scratch.points;
    Point p{origin + points.position[i],
            {{static_cast<double>(points.position[i]), 0.0}, 0.0},
            {{points.total_high[i], points.total_low[i]}, error}};
    if constexpr (E::kWeighted) p.weight = {{points.weight_high[i], points.weight_low[i]}, weight_error};
    return p;
  }
  __device__ bool pair_vertex(int a, int b, int d) const {
    const auto& points = scratch.points;
    double w_ab = points.position[b] - points.position[a];
    double w_bd = points.position[d] - points.position[b];
    if constexpr (E::kWeighted) {
      w_ab = points.weight_high[b] - points.weight_high[a];
      w_bd = points.weight_high[d] - points.weight_high[b];
    }
    const Turn quick = quick_turn<E::kWeighted>(
        w_ab, points.total_high[b] - points.total_high[a], w_bd, points.total_high[d] - points.total_high[b],
        {facts.magnitude, facts.weight_magnitude, error, weight_error});
    if (quick != Turn::undecided) return quick == Turn::up;
    if (rough) {
      scratch.unsure = true;
      return true;
    }
    return undecided(*this, a, b, d);
  }

 private:
  ISOFOLD_DEVICE_OUT_OF_LINE static bool undecided(const SparseChunk chunk, int a, int b, int d) {
    return certified_vertex(chunk.row, chunk.point(a), chunk.point(b), chunk.point(d));
  }
};

// Whether the sums of tiles of floats are not exact. Else the low part of a pair of them fits a float.
template <class E>
__device__ bool is_rough(const ScanFacts& facts) {
  return kPlainTiles<E> && (facts.rough || !exact_as_double(facts.magnitude * 0x1p-8, facts.unit));
}

// Whether the sums of the tiles can be used, and the numbers be fitted at all. Rough chunks are worth it
// while their sums are exact in two doubles (exact_totals.cuh).
template <class E>
__device__ bool sums_known(const ScanFacts& facts) {
  if constexpr (kPlainTiles<E>) return facts.allowed && exact_in_two(facts.magnitude, facts.unit);
  return facts.allowed && !facts.rough;
}

// Turns the tiles' sums into sums before them. Where floats are not exact as doubles their tiles still are,
// and pairs of them are, but in rough chunks: there a tile's sum, and one inside it, is off by at most 32 u
// times its magnitudes, and a low part in a float by 2^-77 of the whole; 2^-47 M is more than all that
// together.
template <class E, int Tiles>
__device__ void sum_before_tiles(SparseChunk<E, Tiles>& chunk) {
  constexpr int kALane = Tiles / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int tiles = chunk.tiles();
  const int a_lane = chunk.tiles_a_lane();
  auto& scratch = chunk.scratch;
  const Team<32> team{nullptr};
  chunk.exact = kPlainTiles<E> && exact_as_double(chunk.facts.magnitude, chunk.facts.unit);
  const auto scan = [&]<class Sum, class Low>(Sum, double* high, Low* low, bool pairs) {
    constexpr int kUnroll = std::is_same_v<Sum, double> ? kALane : 1;
    const auto at = [&](int i) {
      const int t = a_lane * lane + i;
      if (i >= a_lane || t >= tiles) return Sum{};
      if constexpr (std::is_same_v<Sum, double>) {
        return high[padded(t)];
      } else {
        return DoubleDouble{high[padded(t)], pairs ? static_cast<double>(low[padded(t)]) : 0.0};
      }
    };
    Sum own{};
#pragma unroll kUnroll
    for (int i = 0; i < kALane; ++i) own = own + at(i);
    const auto scanned = team.scan(own);
    Sum running = scanned.before;
#pragma unroll kUnroll
    for (int i = 0; i < kALane; ++i) {
      const Sum here = at(i);
      const int t = a_lane * lane + i;
      if (i < a_lane && t < tiles) {
        if constexpr (std::is_same_v<Sum, double>) {
          high[padded(t)] = running;
          low[padded(t)] = 0;
        } else {
          high[padded(t)] = running.high;
          low[padded(t)] = static_cast<Low>(running.low);
        }
      }
      running = running + here;
    }
    if constexpr (std::is_same_v<Sum, double>) {
      return DoubleDouble{scanned.all, 0.0};
    } else {
      return scanned.all;
    }
  };
  if (kPlainTiles<E> && chunk.exact) {
    chunk.total = scan(double{}, scratch.total_high, scratch.total_low, false);
  } else {
    chunk.total = scan(DoubleDouble{}, scratch.total_high, scratch.total_low, !kPlainTiles<E>);
    chunk.rough = is_rough<E>(chunk.facts);
    chunk.error = chunk.rough ? 0x1p-47 * chunk.facts.magnitude
                              : pair_error(chunk.facts.magnitude, chunk.facts.unit, E::kWeighted);
    if (chunk.rough && lane == 0) scratch.unsure = false;
  }
  if constexpr (E::kWeighted) {
    chunk.weight = scan(DoubleDouble{}, scratch.weight_high, scratch.weight_low, true);
    chunk.weight_error = pair_error(chunk.facts.weight_magnitude, chunk.facts.weight_unit, false);
  }
  __syncwarp();
}

// Whether a scanned chunk is worth an attempt: where the tiles' means do not nearly all rise, few points can
// be vertices.
template <class E>
__device__ bool worth_filtering(const ScanFacts& facts, int length) {
  return sums_known<E>(facts) && (2 * facts.rising <= length / kGroup || facts.rising == 0);
}

// Whether the values do not fall from any group of a chunk to the next.
template <class E, int Tiles>
__device__ bool groups_join(const SparseChunk<E, Tiles>& chunk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t next = chunk.origin + (lane + 1) * kGroup;
  const bool between = (lane + 1) * kGroup < chunk.length;
  return __all_sync(0xffffffffU, !between || chunk.row.value(next - 1) <= chunk.row.value(next)) != 0;
}

}  // namespace isofold::cuda
