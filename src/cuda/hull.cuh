// The hull of one chunk: candidates, then either a short list swept to its hull, or tile chains merged
// (tile_merges.cuh).
#pragma once

#include <cstdint>

#include "cuda/chunk.cuh"
#include "cuda/point_list.cuh"
#include "cuda/tile_merges.cuh"

namespace isofold::cuda {

inline constexpr int kPositionCapacity = 2048;  // positions in a chunk, whose totals are exact and at hand
inline constexpr int kWarpPositions = 256;      // the same in what a warp solves
inline constexpr int kFewPositions = 96;        // what one warp sweeps faster than the block
inline constexpr int kFewPoints = 32;           // the same of points with pairs of totals
// Points with their pairs of totals in a chunk.
template <class E>
inline constexpr int kListCapacity = !E::kWeighted && sizeof(typename E::Value) == 4 ? 256 : 512;
inline constexpr int kRefinedVertices = 80;  // where warps find more, their polylines are joined as they are

// Shared memory of a team that filters.
template <class E, int Size>
struct HullScratch {
  static constexpr int kPositions = Size == kBlock ? kPositionCapacity : kWarpPositions;
  static constexpr int kTeams = kBlock / Size;
  union {
    PointList<E::kWeighted, Size == kBlock ? kListCapacity<E> : 1> list;
    std::uint16_t positions[kTeams][kPositions];
  };
  int counts[kPositionCapacity / 32];
  float coarse_x[kBlock];
  float coarse_q[kBlock];
  std::uint32_t coarse[kBlock / 32];  // bit t: the start of tile t is a vertex of the coarse polyline
};

// An edge between two of a tile's points.
struct LightEdge {
  int count;
  double total;
};

// Graham's scan over a tile's candidate points ('Merge Hulls Without Copying Vertices', Section 3.1): a bit
// mask is the stack.
template <class Edge, class Sum, class Join, class Rises>
__device__ std::uint32_t tile_chain(std::uint32_t candidates, Sum sum, Join join, Rises rises) {
  if (candidates == 0) return 0;
  int top = __ffs(static_cast<int>(candidates)) - 1;
  std::uint32_t kept = 1U << top;
  std::uint32_t left = candidates & (candidates - 1);
  int below = -1;  // the vertex before top
  Edge last{};     // from below to top
  while (left != 0) {
    const int next = __ffs(static_cast<int>(left)) - 1;
    left &= left - 1;
    Edge edge = sum(top, next);
    while (below >= 0 && !rises(last, edge, below, top, next)) {
      kept &= ~(1U << top);
      edge = join(last, edge);
      top = below;
      const std::uint32_t lower = kept & ((1U << top) - 1U);
      below = lower == 0 ? -1 : 31 - __clz(static_cast<int>(lower));
      if (below >= 0) last = sum(below, top);
    }
    below = top;
    last = edge;
    top = next;
    kept |= 1U << next;
  }
  return kept;
}

template <class E, int Size>
ISOFOLD_DEVICE_OUT_OF_LINE std::uint32_t certified_tile_chain(const Chunk<E, Size>& chunk,
                                                              std::uint32_t candidates) {
  const int begin = Team<Size>::rank() * kTile;
  struct Edge {
    DoubleDouble total;
    DoubleDouble weight;
  };
  return tile_chain<Edge>(
      candidates,
      [&](int a, int b) {
        Edge edge{};
        for (int k = begin + a; k < begin + b; ++k) add_element<E>(chunk, k, edge.total, edge.weight);
        if constexpr (!E::kWeighted) edge.weight = {static_cast<double>(b - a), 0.0};
        return edge;
      },
      [](const Edge& a, const Edge& b) { return Edge{a.total + b.total, a.weight + b.weight}; },
      [&](const Edge& ab, const Edge& bd, int a, int b, int d) {
        const Point at_a{chunk.origin + begin + a, {{0.0, 0.0}, 0.0}, {{0.0, 0.0}, 0.0}};
        const Point at_b{chunk.origin + begin + b, {ab.weight, chunk.weight_error}, {ab.total, chunk.error}};
        const Point at_d{chunk.origin + begin + d,
                         {ab.weight + bd.weight, chunk.weight_error},
                         {ab.total + bd.total, chunk.error}};
        return certified_vertex(chunk.row, at_a, at_b, at_d);
      });
}

template <class E, int Size>
__device__ std::uint32_t exact_tile_chain(const Chunk<E, Size>& chunk, std::uint32_t candidates) {
  const int begin = Team<Size>::rank() * kTile;
  return tile_chain<LightEdge>(
      candidates,
      [&](int a, int b) {
        return LightEdge{b - a, chunk.exact_total(begin + b) - chunk.exact_total(begin + a)};
      },
      [](const LightEdge& a, const LightEdge& b) { return LightEdge{a.count + b.count, a.total + b.total}; },
      [](const LightEdge& ab, const LightEdge& bd, int, int, int) {
        return product_above(bd.total, ab.count, ab.total, bd.count);
      });
}

template <class E, int Size>
ISOFOLD_DEVICE_OUT_OF_LINE void chunk_hull_by_chains(const Chunk<E, Size>& chunk, std::uint32_t candidates,
                                                     HullScratch<E, Size>* scratch) {
  const int rank = Team<Size>::rank();
  std::uint16_t* starts = nullptr;
  int* counts = nullptr;
  if constexpr (Size == kBlock) {
    starts = scratch->positions[0];
    counts = scratch->counts;
  }
  if constexpr (!E::kWeighted) {
    if (chunk.exact) {
      chunk.mask(rank) = exact_tile_chain(chunk, candidates);
      merge_all_tiles(ExactDoublesChain<E, Size>{chunk}, chunk, starts, counts);
      return;
    }
  }
  chunk.mask(rank) = certified_tile_chain(chunk, candidates);
  merge_all_tiles(CertifiedChain<E, Size>{chunk}, chunk, starts, counts);
}

// Which tile starts are vertices of the coarse polyline, as bits: of the team's tiles, in shared memory for a
// block. Chosen in floats, roughly: any choice makes chords that hold.
template <class E, int Size>
__device__ VertexMask coarse_polyline(const Chunk<E, Size>& chunk, HullScratch<E, Size>& scratch, double x,
                                      double q) {
  const int tile = Team<Size>::rank();
  const int lane = tile % 32;
  const int warp = tile / 32;
  const int tiles = chunk.tiles();
  const float xf = static_cast<float>(x);
  const float qf = static_cast<float>(q);
  float steepest_left = -INFINITY;
  float flattest_right = INFINITY;
#pragma unroll
  for (int i = 1; i < 32; ++i) {
    const int other = (lane + i) & 31;
    const float ox = E::kWeighted ? __shfl_sync(0xffffffffU, xf, other) : 0.0F;
    const float oq = __shfl_sync(0xffffffffU, qf, other);
    // Unweighted tiles are of one width, and a slope in tiles will do.
    const float between = E::kWeighted ? __fdividef(oq - qf, ox - xf)
                                       : (oq - qf) * (other > lane ? 1.0F / i : -1.0F / (32 - i));
    if (other < lane) {
      steepest_left = fmaxf(steepest_left, between);
    } else if (warp * 32 + other < tiles) {
      flattest_right = fminf(flattest_right, between);
    }
  }
  bool vertex = tile < tiles && steepest_left < flattest_right;
  if constexpr (Size == kBlock) {
    const unsigned own = __ballot_sync(0xffffffffU, vertex);
    if (lane == 0) scratch.counts[warp] = __popc(own);
    __syncthreads();
    int before = 0;
    int all = 0;
    for (int w = 0; w < kBlock / 32; ++w) {
      if (w < warp) before += scratch.counts[w];
      all += scratch.counts[w];
    }
    const int place = before + __popc(own & ((1U << lane) - 1U));
    if (vertex) {
      scratch.coarse_x[place] = xf;
      scratch.coarse_q[place] = qf;
    }
    __syncthreads();
    if (vertex && all <= kRefinedVertices) {
      steepest_left = -INFINITY;
      flattest_right = INFINITY;
      for (int i = 0; i < place; ++i) {
        steepest_left = fmaxf(steepest_left, __fdividef(scratch.coarse_q[i] - qf, scratch.coarse_x[i] - xf));
      }
      for (int i = place + 1; i < all; ++i) {
        flattest_right =
            fminf(flattest_right, __fdividef(scratch.coarse_q[i] - qf, scratch.coarse_x[i] - xf));
      }
      vertex = steepest_left < flattest_right;
    }
  }
  const unsigned ballot = __ballot_sync(0xffffffffU, vertex || tile == 0 || tile == tiles - 1);
  std::uint32_t* words = scratch.coarse + Team<Size>::index() * Size / 32;
  if (lane == 0) words[warp] = ballot;
  Team<Size>::sync();
  return VertexMask(words);
}

// Thins a tile's rising points. A point on or above a chord between two points of the diagram, its abscissa
// strictly between theirs, is no vertex; any chord will do. The chords are those of a coarse polyline through
// tile starts: only the comparison below must be conservative. Heights are taken over the line from the
// chunk's start to its end, which cancels what is large.
//
// With M = sum |w y|, every ordinate here is below 4 M and is formed in fewer than eight roundings from
// totals off by at most 2^-53 M: 2^-45 M is more than it can be off. Where totals are pairs, a tile's running
// height is off by at most 33 u B besides, B the sum of its terms' magnitudes, u = 2^-53; 2^-44 B is above
// that. A slope that underflows is off by 2^-1075, at
// most 2^-1060 times the width in height. Weighted abscissae are differences of pairs, relative error below
// 2^-47 where the chord is wider than 2^-40 of the chunk: at most 2^-44 M in height; narrower chords are not
// used. Tests read !(height > threshold), so that a NaN or an infinity keeps the point.
template <class E, int Size>
__device__ std::uint32_t filter_points(const Chunk<E, Size>& chunk, const ChunkFacts& facts,
                                       HullScratch<E, Size>& scratch) {
  const int tile = Team<Size>::rank();
  const int tiles = chunk.tiles();
  const int own = min(tile, tiles - 1);  // idle threads follow the last
  const auto abscissa = [&](int t) {
    if constexpr (E::kWeighted) return chunk.weight_before(t);
    return DoubleDouble{static_cast<double>(t == Size ? chunk.length : t * kTile), 0.0};
  };
  const double width = abscissa(Size).high;
  const double slope = chunk.total_before(Size).high / width;
  const auto height_at = [&](int t) { return chunk.total_before(t).high - slope * abscissa(t).high; };
  const double q = height_at(own);
  const VertexMask coarse = coarse_polyline(chunk, scratch, abscissa(own).high, q);
  std::uint32_t rising = chunk.rising;
  if (rising == 0) return 0;

  // The chord over this tile.
  const int from = static_cast<int>(coarse.previous(tile));
  const int to = tile == tiles - 1 ? Size : static_cast<int>(coarse.next(tile + 1));
  const DoubleDouble from_x = abscissa(from);
  const auto beyond = [&](const DoubleDouble& x) { return (x.high - from_x.high) + (x.low - from_x.low); };
  const double reach = beyond(abscissa(to));
  const double from_q = height_at(from);
  const double chord = (height_at(to) - from_q) / reach;
  const double gap = q - (from_q + chord * beyond(abscissa(tile)));
  const int begin = tile * kTile;
  const int count = min(kTile, chunk.length - begin);
  std::uint32_t kept = 0;
  const double shear = slope + chord;
  if constexpr (!E::kWeighted) {
    if (chunk.exact) {
      // Heights straight from the totals.
      const double threshold = 0x1p-45 * facts.magnitude + 0x1p-1000;
      const double* totals = chunk.storage->region().totals + staged(begin);
      const double base = totals[0] - gap;
      double line = 0;
#pragma unroll 8
      for (int k = 0; k < count; ++k) {
        if (!((totals[k] - base) - line > threshold)) kept |= 1U << k;
        line = shear * (k + 1);
      }
      return (kept & rising) | (tile == 0 ? 1U : 0U);
    }
  } else {
    if (!(reach > 0x1p-40 * width)) return rising;
  }
  double terms = fabs(gap);
  for (int i = begin; i < begin + count; ++i) {
    terms += chunk.weight(i) * (fabs(chunk.value(i)) + fabs(shear));
  }
  const double threshold = 0x1p-43 * facts.magnitude + terms * 0x1p-44 + 0x1p-1060 * width + 0x1p-1000;
  double height = gap;
  for (int i = begin; i < begin + count; ++i) {
    if (!(height > threshold)) kept |= 1U << (i - begin);
    height += chunk.weight(i) * (chunk.value(i) - shear);
  }
  return (kept & rising) | (tile == 0 ? 1U : 0U);
}

// The hull of the listed candidates, as the chunk's mask, where totals are exact.
template <class E, int Size>
__device__ void chunk_hull_by_positions(const Chunk<E, Size>& chunk, HullScratch<E, Size>& scratch,
                                        std::uint32_t candidates, int place, int count) {
  const int rank = Team<Size>::rank();
  auto* positions = scratch.positions[Team<Size>::index()];
  for (std::uint32_t left = candidates; left != 0; left &= left - 1) {
    positions[place++] = static_cast<std::uint16_t>(rank * kTile + __ffs(static_cast<int>(left)) - 1);
  }
  if (rank == 0) positions[count] = static_cast<std::uint16_t>(chunk.length);
  chunk.mask(rank) = 0;
  Team<Size>::sync();
  const auto is_vertex = [&](int a, int b, int d) {
    const auto light = [&](int p) { return LightPoint{p, chunk.exact_total(p)}; };
    return light_vertex(light(a), light(b), light(d));
  };
  if constexpr (Size == kBlock) {
    count = sweep_block<kPositionCapacity>(positions, count + 1, kFewPositions, scratch.counts, is_vertex);
  } else {
    count = sweep_warp(positions, count + 1, is_vertex);
  }
  for (int i = rank; i < count - 1; i += Size) {
    atomicOr(&chunk.mask(positions[i] / kTile), 1U << (positions[i] % kTile));
  }
  Team<Size>::sync();
}

// The same where totals are pairs.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE void chunk_hull_by_list(const Chunk<E, kBlock>& chunk, const ChunkFacts& facts,
                                                   HullScratch<E, kBlock>& scratch, std::uint32_t candidates,
                                                   int place, int count) {
  auto& list = scratch.list;
  const int tile = static_cast<int>(threadIdx.x);
  auto* storage = chunk.storage;
  if (candidates != 0) {
    DoubleDouble total = chunk.total_before(tile);
    DoubleDouble weight = chunk.weight_before(tile);
    const int last = 31 - __clz(static_cast<int>(candidates));
    for (int k = 0;; ++k) {
      const int i = tile * kTile + k;
      if ((candidates >> k & 1U) != 0) list.set(place++, chunk.origin + i, total, weight, 0);
      if (k == last) break;
      add_element<E>(chunk, i, total, weight);
    }
  }
  if (tile == 0) {
    list.set(count, chunk.origin + chunk.length, chunk.total_before(kBlock), chunk.weight_before(kBlock), 0);
  }
  storage->mask[tile] = 0;
  __syncthreads();
  const SpanFacts span{facts.magnitude, facts.weight_magnitude, chunk.error, chunk.weight_error};
  list.number(count + 1);
  const int left = sweep_block<kListCapacity<E>>(
      list.order, count + 1, kFewPoints, scratch.counts, [&](int a, int b, int d) {
        const Turn quick = list.quick_turn(a, b, d, span);
        if (quick != Turn::undecided) return quick == Turn::up;
        return certified_vertex(chunk.row, list.point(a, chunk.error, chunk.weight_error),
                                list.point(b, chunk.error, chunk.weight_error),
                                list.point(d, chunk.error, chunk.weight_error));
      });
  for (int i = tile; i < left - 1; i += kBlock) {
    const int at = static_cast<int>(list.index[list.order[i]] - chunk.origin);
    atomicOr(&storage->mask[at / kTile], 1U << (at % kTile));
  }
  __syncthreads();
}

// The hull of a chunk as vertex bits in storage->mask. `filter`: whether it is likely to drop many points.
template <class E, int Size>
__device__ void chunk_hull(const Chunk<E, Size>& chunk, const ChunkFacts& facts, const Team<Size>& team,
                           HullScratch<E, Size>* scratch, bool filter) {
  std::uint32_t candidates = chunk.rising;
  if constexpr (Size == kBlock || (Size == 32 && !E::kWeighted)) {
    if (Size == kBlock || chunk.exact) {
      if (filter) candidates = filter_points(chunk, facts, *scratch);
      const auto places = team.scan(__popc(candidates));
      if (!E::kWeighted && chunk.exact) {
        if (places.all < HullScratch<E, Size>::kPositions) {
          chunk_hull_by_positions(chunk, *scratch, candidates, places.before, places.all);
          return;
        }
      } else if constexpr (Size == kBlock) {
        if (places.all < kListCapacity<E>) {
          chunk_hull_by_list(chunk, facts, *scratch, candidates, places.before, places.all);
          return;
        }
      }
    }
  }
  chunk_hull_by_chains(chunk, candidates, scratch);
}

}  // namespace isofold::cuda
