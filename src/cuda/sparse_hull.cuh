// The hull of a scanned chunk, by one warp, where few points can be vertices: a coarse polyline through tile
// starts, the tiles that can dip below it, their points that do, and sweeps over those.
#pragma once

#include <cstdint>

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

// Shared memory of a warp that filters.
template <class E>
struct alignas(16) SparseScratch {
  static constexpr int kSums = kScanTiles + kScanTiles / 8;
  using Low = typename SparsePoints<E>::Low;
  using Slope = std::conditional_t<kPlainTiles<E>, float, double>;
  double total_high[kSums];  // of the tile, later before it
  double weight_high[E::kWeighted ? kSums : 1];
  double weight_low[E::kWeighted ? kSums : 1];
  Low total_low[kSums];
  Slope left_slope[32];  // over the tiles before and after the vertex of a lane's tiles
  Slope right_slope[32];
  float depth[kScanTiles];         // later the gap between tile start and polyline
  std::uint8_t alive[kScanTiles];  // tiles that may hold vertices
  std::uint8_t vertex[32];         // the first of the lane's tiles under the right edge
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
};

// A chunk between its scan and its hull, as one warp sees it.
template <class E>
struct SparseChunk {
  SparseScratch<E>& scratch;
  E row;
  std::int64_t origin;
  int length;
  ScanFacts facts;
  bool exact = false;     // sums are exact as doubles
  DoubleDouble total{};   // of the chunk
  DoubleDouble weight{};  // weighted only
  double error = 0.0;     // of the pairs of running totals of w y
  double weight_error = 0.0;

  __device__ int tiles() const { return (length + kTile - 1) / kTile; }
  __device__ int tiles_a_lane() const { return (tiles() + 31) / 32; }
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
    return undecided(*this, a, b, d);
  }

 private:
  ISOFOLD_DEVICE_OUT_OF_LINE static bool undecided(const SparseChunk chunk, int a, int b, int d) {
    return certified_vertex(chunk.row, chunk.point(a), chunk.point(b), chunk.point(d));
  }
};

// Turns the tiles' sums into sums before them. Where floats are not exact as doubles their tiles still are
// (`rough` says where not), and pairs of them are.
template <class E>
__device__ void sum_before_tiles(SparseChunk<E>& chunk) {
  constexpr int kALane = kScanTiles / 32;
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
    chunk.error = pair_error(chunk.facts.magnitude, chunk.facts.unit, E::kWeighted);
  }
  if constexpr (E::kWeighted) {
    chunk.weight = scan(DoubleDouble{}, scratch.weight_high, scratch.weight_low, true);
    chunk.weight_error = pair_error(chunk.facts.weight_magnitude, chunk.facts.weight_unit, false);
  }
  __syncwarp();
}

inline constexpr int kManyAlive = 64;  // tiles above which a better polyline pays

// Finds the tiles that can hold a vertex, lists them in scratch.alive and returns how many they are; leaves
// the gap of every tile start over the polyline in `depth`, and the slopes over each lane's tiles.
//
// A point on or above a chord between two points of the diagram, its abscissa strictly between theirs, is no
// vertex; any chord will do, so the polyline may be chosen in floats and roughly. It has at most a vertex a
// lane, the lowest of the lane's tile starts: over the chord from the chunk's start to its end, and where
// that leaves many tiles, once more over the polyline itself. Heights are taken over the first chord, which
// cancels what is large. With M = sum |w y|, every ordinate below is at most 4 M and formed in fewer than
// eight roundings from totals off by at most 2^-52 M: 2^-45 M is more than it can be off. Weighted abscissae
// are differences of pairs, off by at most 2^-47 of a chord wider than 2^-40 of the chunk, 2^-44 M in height;
// narrower chords are not used. Tests read !(height > threshold), so that a NaN keeps the tile.
template <class E>
__device__ int list_alive_tiles(const SparseChunk<E>& chunk) {
  constexpr int kALane = kScanTiles / 32;
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
    alive = 0;
#pragma unroll
    for (int i = 0; i < kALane; ++i) {
      if (i >= own) continue;
      const int t = begin + i;
      const double after = t + 1 == tiles ? 0.0 : (i + 1 < a_lane ? gap[(i + 1) % kALane] : end_gap);
      if (!(fmin(gap[i], after) > static_cast<double>(scratch.depth[t]) + threshold)) alive |= 1U << i;
    }
    scratch.left_slope[lane] = static_cast<typename SparseScratch<E>::Slope>(slope + left_edge);
    scratch.right_slope[lane] = static_cast<typename SparseScratch<E>::Slope>(slope + edge);
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
// slope, G the gap. For pairs terms are formed in doubles and run in floats: 2^-18 (G + D) and 2^-50 |s| W.
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
    const float threshold = size * 0x1p-18F + general + static_cast<float>(fabs(slope) * width * 0x1p-50);
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
    if (done) return count;
    pack_points(chunk, count);
    thinned = count;
  }
}

// Whether the sums of the tiles can be trusted, and the numbers be fitted at all.
template <class E>
__device__ bool sums_known(const ScanFacts& facts) {
  // The low part of a pair must fit a float.
  return facts.allowed && !facts.rough &&
         (!kPlainTiles<E> || exact_as_double(facts.magnitude * 0x1p-8, facts.unit));
}

// Whether a scanned chunk is worth an attempt: where the tiles' means do not nearly all rise, few points can
// be vertices.
template <class E>
__device__ bool worth_filtering(const ScanFacts& facts, int length) {
  return sums_known<E>(facts) && (2 * facts.rising <= length / kGroup || facts.rising == 0);
}

// Whether the values do not fall from any group of a chunk to the next.
template <class E>
__device__ bool groups_join(const SparseChunk<E>& chunk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t next = chunk.origin + (lane + 1) * kGroup;
  const bool between = (lane + 1) * kGroup < chunk.length;
  return __all_sync(0xffffffffU, !between || chunk.row.value(next - 1) <= chunk.row.value(next)) != 0;
}

}  // namespace isofold::cuda
