// The hull of one chunk: candidates, then either a short list swept to its hull, or tile chains merged
// pairwise.
#pragma once

#include <cstdint>

#include "cuda/chunk.cuh"
#include "cuda/point_list.cuh"
#include "geometry/chain_bridge.hpp"

namespace isofold::cuda {

inline constexpr int kListCapacity = 512;

template <class E>
struct HullScratch {  // of a block that filters
  PointList<E::kWeighted, kListCapacity> list;
  int counts[4 * kBlock / 32];
  float coarse_x[kBlock];
  float coarse_q[kBlock];
  std::uint32_t coarse[kBlock / 32];  // bit t: the start of tile t is a vertex of the coarse polyline
};

// Point i can be a vertex only where the values rise; so can the first point.
template <class E, int Size>
__device__ std::uint32_t rising_points(const Chunk<E, Size>& chunk) {
  const int begin = Team<Size>::rank() * kTile;
  const int end = min(begin + kTile, chunk.length);
  if (begin >= end) return 0;
  std::uint32_t points = begin == 0 ? 1U : 0U;
  double previous = begin == 0 ? chunk.value(0) : chunk.value(begin - 1);
  for (int i = begin; i < end; ++i) {
    const double v = chunk.value(i);
    if (previous < v) points |= 1U << (i - begin);
    previous = v;
  }
  return points;
}

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
__device__ __noinline__ std::uint32_t certified_tile_chain(const Chunk<E, Size>& chunk,
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
        for (int k = begin + a; k < begin + b; ++k) {
          if constexpr (E::kWeighted) {
            const TwoTerms product = two_product(chunk.weight(k), chunk.value(k));
            edge.total = edge.total + DoubleDouble{product.high, product.low};
            edge.weight = edge.weight + chunk.weight(k);
          } else {
            edge.total = edge.total + chunk.value(k);
          }
        }
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
        LightEdge edge{b - a, 0.0};
        for (int k = begin + a; k < begin + b; ++k) edge.total += chunk.value(k);
        return edge;
      },
      [](const LightEdge& a, const LightEdge& b) {
        return LightEdge{a.count + b.count, a.total + b.total};
      },
      [](const LightEdge& ab, const LightEdge& bd, int, int, int) {
        return compare_products(bd.total, ab.count, ab.total, bd.count) > 0;
      });
}

// Clears the vertices strictly between two points of a chunk.
template <class E, int Size>
__device__ void clear_between(const Chunk<E, Size>& chunk, int left, int right) {
  const int first = left + 1;
  const int last = right - 1;
  if (first > last) return;
  for (int tile = first / kTile; tile <= last / kTile; ++tile) {
    std::uint32_t gone = ~0U;
    if (tile == first / kTile) gone &= ~0U << (first % kTile);
    if (tile == last / kTile) gone &= ~0U >> (kTile - 1 - last % kTile);
    chunk.mask(tile) &= ~gone;
  }
}

// Merges the chains of the tiles in [first, middle) and [middle, end), either of which may be empty.
template <class Chain, class E, int Size>
__device__ void merge_tiles(const Chain& chain, const Chunk<E, Size>& chunk, int first, int middle, int end) {
  const auto lowest = [&](int from, int to) {
    for (int t = from; t < to; ++t) {
      if (chunk.mask(t) != 0) return t * kTile + __ffs(static_cast<int>(chunk.mask(t))) - 1;
    }
    return -1;
  };
  const auto highest = [&](int from, int to) {
    for (int t = to - 1; t >= from; --t) {
      if (chunk.mask(t) != 0) return t * kTile + 31 - __clz(static_cast<int>(chunk.mask(t)));
    }
    return -1;
  };
  const int left = highest(first, middle);
  const int right = lowest(middle, end);
  if (left < 0 || right < 0) return;
  const ChainBridge<Chain> bridge(chain, lowest(first, middle), left, right, highest(middle, end));
  clear_between(chunk, static_cast<int>(bridge.left()), static_cast<int>(bridge.right()));
}

// Tile chains of the candidates, merged pairwise; then the chunk's end bends the last edge.
template <class Chain, class E, int Size>
__device__ void merge_all_tiles(const Chain& chain, const Chunk<E, Size>& chunk) {
  const int rank = Team<Size>::rank();
  const int tiles = chunk.tiles();
  for (int reach = 1; reach < Size; reach *= 2) {
    Team<Size>::sync();
    if (rank % (2 * reach) == 0 && rank + reach < tiles) {
      merge_tiles(chain, chunk, rank, rank + reach, min(rank + 2 * reach, tiles));
    }
  }
  Team<Size>::sync();
  if (rank == 0 && tiles > 0) {
    const std::int64_t last = chunk.at_or_before(tiles * kTile - 1);
    const ChainBridge<Chain> bridge(chain, 0, last, chunk.length, chunk.length);
    clear_between(chunk, static_cast<int>(bridge.left()), chunk.length);
  }
  Team<Size>::sync();
}

template <class E, int Size>
__device__ void chunk_hull_by_chains(const Chunk<E, Size>& chunk, const ChunkFacts& facts,
                                     std::uint32_t candidates) {
  const int rank = Team<Size>::rank();
  chunk.mask(rank) =
      facts.exact_doubles ? exact_tile_chain(chunk, candidates) : certified_tile_chain(chunk, candidates);
  if (facts.exact_doubles) {
    merge_all_tiles(ExactDoublesChain<E, Size>{chunk}, chunk);
  } else {
    merge_all_tiles(CertifiedChain<E, Size>{chunk}, chunk);
  }
}

// Thins a tile's rising points. A point on or above a chord between two points of the diagram, its abscissa
// strictly between theirs, is no vertex; any chord will do. The chords are those of a coarse polyline through
// tile starts, whose vertices are chosen in floats, roughly: only the comparison below must be conservative.
//
// Heights are taken over the line from the chunk's start to its end. With M = sum |w y| (and 2^-45 M for what
// the prefix sums and three roundings of terms below 4 M can be off), a tile's running height D is off by at
// most 33 u B with B the sum of the magnitudes of its terms, u the roundoff of the type it runs in; 2^-18
// and 2^-44 are above 33 u. Written as !(D > threshold), so that a NaN or an infinity keeps the point.
template <class E>
__device__ std::uint32_t filter_points(const Chunk<E, kBlock>& chunk, const ChunkFacts& facts,
                                       HullScratch<E>& scratch, std::uint32_t rising) {
  const int tile = static_cast<int>(threadIdx.x);
  const int lane = tile % 32;
  const int warp = tile / 32;
  const int tiles = chunk.tiles();
  const auto* storage = chunk.storage;
  const auto abscissa = [&](int t) {
    if constexpr (E::kWeighted) return storage->weight_high[t];
    return static_cast<double>(min(t * kTile, chunk.length));
  };
  const double width = E::kWeighted ? storage->weight_high[kBlock] : static_cast<double>(chunk.length);
  const double slope = storage->total_high[kBlock] / width;
  const double x = abscissa(tile);
  const double q = storage->total_high[tile] - slope * x;

  // Vertices among the warp's tile starts, then among those of all warps.
  const auto is_coarse_vertex = [](float left, float right) { return left < right; };
  const float xf = static_cast<float>(x);
  const float qf = static_cast<float>(q);
  float steepest_left = -INFINITY;
  float flattest_right = INFINITY;
#pragma unroll 4
  for (int i = 1; i < 32; ++i) {
    const int other = (lane + i) & 31;
    const float ox = __shfl_sync(0xffffffffU, xf, other);
    const float oq = __shfl_sync(0xffffffffU, qf, other);
    const float between = __fdividef(oq - qf, ox - xf);
    if (other < lane) {
      steepest_left = fmaxf(steepest_left, between);
    } else if (warp * 32 + other < tiles) {
      flattest_right = fminf(flattest_right, between);
    }
  }
  bool vertex = tile < tiles && is_coarse_vertex(steepest_left, flattest_right);
  unsigned ballot = __ballot_sync(0xffffffffU, vertex);
  if (lane == 0) scratch.counts[warp] = __popc(ballot);
  __syncthreads();
  int before = 0;
  int all = 0;
  for (int w = 0; w < kBlock / 32; ++w) {
    if (w < warp) before += scratch.counts[w];
    all += scratch.counts[w];
  }
  const int place = before + __popc(ballot & ((1U << lane) - 1U));
  if (vertex) {
    scratch.coarse_x[place] = xf;
    scratch.coarse_q[place] = qf;
  }
  __syncthreads();
  if (vertex) {
    steepest_left = -INFINITY;
    flattest_right = INFINITY;
    for (int i = 0; i < place; ++i) {
      steepest_left =
          fmaxf(steepest_left, __fdividef(scratch.coarse_q[i] - qf, scratch.coarse_x[i] - xf));
    }
    for (int i = place + 1; i < all; ++i) {
      flattest_right =
          fminf(flattest_right, __fdividef(scratch.coarse_q[i] - qf, scratch.coarse_x[i] - xf));
    }
    vertex = tile == 0 || tile == tiles - 1 || is_coarse_vertex(steepest_left, flattest_right);
  }
  vertex = vertex || tile == 0 || tile == tiles - 1;
  ballot = __ballot_sync(0xffffffffU, vertex);
  if (lane == 0) scratch.coarse[warp] = ballot;
  __syncthreads();
  if (rising == 0) return 0;

  // The chord over this tile.
  const VertexMask coarse(scratch.coarse);
  const int from = static_cast<int>(coarse.previous(tile));
  const int to = tile == tiles - 1 ? kBlock : static_cast<int>(coarse.next(tile + 1));
  const double from_x = abscissa(from);
  const double from_q = storage->total_high[from] - slope * from_x;
  const double to_x = to == kBlock ? width : abscissa(to);
  const double to_q = to == kBlock ? storage->total_high[kBlock] - slope * width
                                   : storage->total_high[to] - slope * to_x;
  const double chord = (to_q - from_q) / (to_x - from_x);
  const double gap = q - (from_q + chord * (x - from_x));
  const double shear = slope + chord;
  const double slack = 0x1p-45 * facts.magnitude + 0x1p-1000;

  const int begin = tile * kTile;
  const int end = min(begin + kTile, chunk.length);
  std::uint32_t kept = 0;
  if constexpr (std::is_same_v<typename E::Value, float> && !E::kWeighted) {
    const float sign = static_cast<float>(chunk.row.sign);
    const auto* values = storage->values + staged(begin);
    const float level = static_cast<float>(shear);
    float terms = fabsf(static_cast<float>(gap)) + 32.0F * fabsf(level);
    for (int i = 0; i < end - begin; ++i) terms += fabsf(values[i]);
    const float threshold = static_cast<float>(slack) + terms * 0x1p-18F + 0x1p-140F;
    float height = static_cast<float>(gap);
    for (int i = 0; i < end - begin; ++i) {
      if (!(height > threshold)) kept |= 1U << i;
      height += sign * values[i] - level;
    }
  } else {
    double terms = fabs(gap);
    for (int i = begin; i < end; ++i) terms += chunk.weight(i) * (fabs(chunk.value(i)) + fabs(shear));
    const double threshold = slack + terms * 0x1p-44;
    double height = gap;
    for (int i = begin; i < end; ++i) {
      if (!(height > threshold)) kept |= 1U << (i - begin);
      height += chunk.weight(i) * (chunk.value(i) - shear);
    }
  }
  return (kept & rising) | (tile == 0 ? 1U : 0U);
}

// The hull of the listed candidates, as the chunk's mask.
template <class E>
__device__ void chunk_hull_by_list(const Chunk<E, kBlock>& chunk, const ChunkFacts& facts,
                                   HullScratch<E>& scratch, std::uint32_t candidates, int place, int count) {
  auto& list = scratch.list;
  const int tile = static_cast<int>(threadIdx.x);
  auto* storage = chunk.storage;
  if (candidates != 0) {
    DoubleDouble total{storage->total_high[tile], storage->total_low[tile]};
    DoubleDouble weight{};
    if constexpr (E::kWeighted) weight = {storage->weight_high[tile], storage->weight_low[tile]};
    const int last = 31 - __clz(static_cast<int>(candidates));
    for (int k = 0;; ++k) {
      const int i = tile * kTile + k;
      if ((candidates >> k & 1U) != 0) list.set(place++, chunk.origin + i, total, weight, 0);
      if (k == last) break;
      if constexpr (E::kWeighted) {
        const TwoTerms product = two_product(chunk.weight(i), chunk.value(i));
        total = total + DoubleDouble{product.high, product.low};
        weight = weight + chunk.weight(i);
      } else if (facts.exact_doubles) {
        total.high += chunk.value(i);
      } else {
        total = total + chunk.value(i);
      }
    }
  }
  if (tile == 0) {
    DoubleDouble weight{};
    if constexpr (E::kWeighted) weight = {storage->weight_high[kBlock], storage->weight_low[kBlock]};
    list.set(count, chunk.origin + chunk.length,
             {storage->total_high[kBlock], storage->total_low[kBlock]}, weight, 0);
  }
  __syncthreads();
  int left;
  if (facts.exact_doubles) {
    left = sweep_to_hull(list, count + 1, scratch.counts, [&](int i) {
      const auto light = [&](int j) {
        return LightPoint{static_cast<int>(list.index[j] - chunk.origin), list.total_high[j]};
      };
      return !light_vertex(light(i - 1), light(i), light(i + 1));
    });
  } else {
    left = sweep_to_hull(list, count + 1, scratch.counts, [&](int i) {
      return !certified_vertex(chunk.row, list.point(i - 1, chunk.error, chunk.weight_error),
                               list.point(i, chunk.error, chunk.weight_error),
                               list.point(i + 1, chunk.error, chunk.weight_error));
    });
  }
  storage->mask[tile] = 0;
  __syncthreads();
  for (int i = tile; i < left - 1; i += kBlock) {
    const int at = static_cast<int>(list.index[i] - chunk.origin);
    atomicOr(&storage->mask[at / kTile], 1U << (at % kTile));
  }
  __syncthreads();
}

// The hull of a chunk as vertex bits in storage->mask.
template <class E, int Size>
__device__ void chunk_hull(const Chunk<E, Size>& chunk, const ChunkFacts& facts, const Team<Size>& team,
                           HullScratch<E>* scratch) {
  std::uint32_t candidates = rising_points(chunk);
  if constexpr (Size == kBlock) {
    candidates = filter_points(chunk, facts, *scratch, candidates);
    const auto places = team.scan(__popc(candidates));
    if (places.all < kListCapacity) {
      chunk_hull_by_list(chunk, facts, *scratch, candidates, places.before, places.all);
      return;
    }
  }
  chunk_hull_by_chains(chunk, facts, candidates);
}

}  // namespace isofold::cuda
