// Merging the convex chains of a chunk's tiles in place: joints are cut all at once, and the runs of tiles
// that are convex then are merged pairwise.
#pragma once

#include <cstdint>

#include "cuda/chunk.cuh"
#include "cuda/point_list.cuh"
#include "cuda/search.cuh"
#include "geometry/chain_bridge.hpp"

namespace isofold::cuda {

inline constexpr int kJointRounds = 2;  // cuts of all tile joints before tiles are merged
inline constexpr int kWarpMerges = 16;  // merges of runs at a time up to which each gets a warp

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
ISOFOLD_DEVICE_OUT_OF_LINE void merge_tiles(const Chain& chain, const Chunk<E, Size>& chunk, int first,
                                            int middle, int end) {
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

// Cuts every tile's chain where it joins the next one's, all at once. What is cut is no vertex whatever
// happens at the tile's other end, and little is left for the merges where points die near joints.
template <class Chain, class E, int Size>
ISOFOLD_DEVICE_OUT_OF_LINE void cut_tile_joints(const Chain& chain, const Chunk<E, Size>& chunk) {
  const int tile = Team<Size>::rank();
  Team<Size>::sync();
  const std::uint32_t own = chunk.mask(tile);
  const std::uint32_t next = tile + 1 < chunk.tiles() ? chunk.mask(tile + 1) : 0U;
  const bool joins = own != 0 && next != 0;
  std::uint32_t keep_own = ~0U;
  std::uint32_t keep_next = ~0U;
  if (joins) {
    const int begin = tile * kTile;
    const int end = begin + kTile;
    const ChainBridge<Chain> bridge(
        chain, begin + __ffs(static_cast<int>(own)) - 1, begin + 31 - __clz(static_cast<int>(own)),
        end + __ffs(static_cast<int>(next)) - 1, end + 31 - __clz(static_cast<int>(next)));
    keep_own = ~0U >> (kTile - 1 - static_cast<int>(bridge.left() - begin));
    keep_next = ~0U << static_cast<int>(bridge.right() - end);
  }
  Team<Size>::sync();
  if (joins) {
    atomicAnd(&chunk.mask(tile), keep_own);
    atomicAnd(&chunk.mask(tile + 1), keep_next);
  }
  Team<Size>::sync();
}

// Whether the diagram bends up where a tile's chain begins, between the vertices next to there; so it is said
// to of tiles without vertices. A thread.
template <class Chain, class E>
__device__ bool tile_joint_bends(const Chain& chain, const Chunk<E, kBlock>& chunk, int tile) {
  const std::uint32_t own = chunk.mask(tile);
  if (own == 0) return true;
  const std::int64_t right = tile * kTile + __ffs(static_cast<int>(own)) - 1;
  if (right == 0) return false;  // the chunk's first
  const std::int64_t left = chunk.at_or_before(tile * kTile - 1);
  const auto at_left = chain.point(left);
  const auto at_right = chain.point(right);
  if (left > 0 && !chain.is_vertex(chain.point(chunk.at_or_before(left - 1)), at_left, at_right))
    return false;
  const std::int64_t next = chunk.at_or_after(right + 1);
  return next == chunk.length || chain.is_vertex(at_left, at_right, chain.point(next));
}

// Clears the vertices strictly between two of a chunk, which has some at both. One warp.
template <class E>
__device__ void clear_between_by_warp(const Chunk<E, kBlock>& chunk, int left, int right) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = left / kTile;
  const int last = right / kTile;
  for (int tile = first + lane; tile <= last; tile += 32) {
    std::uint32_t stays = 0;
    if (tile == first) stays |= ~0U >> (kTile - 1 - left % kTile);
    if (tile == last) stays |= ~0U << (right % kTile);
    chunk.mask(tile) &= stays;
  }
}

// Merges the convex runs of the tiles in [first, middle) and [middle, end), the first tiles of which have
// vertices. One warp: every lane asks about a vertex of its own (chain_bridge.hpp has the argument).
template <class Chain, class E>
ISOFOLD_DEVICE_OUT_OF_LINE void merge_runs(const Chain& chain, const Chunk<E, kBlock>& chunk, int first,
                                           int middle, int end) {
  const auto lowest = [&](int tile) { return tile * kTile + __ffs(static_cast<int>(chunk.mask(tile))) - 1; };
  const int first_index = lowest(first);
  const auto last_index = static_cast<int>(chunk.at_or_before(end * kTile - 1));
  auto left = static_cast<int>(chunk.at_or_before(middle * kTile - 1));
  int right = lowest(middle);
  for (bool started = false;; started = true) {
    const auto to = chain.point(right);
    const int back = first_that_holds(left - first_index + 1, [&](int k) {
      const std::int64_t vertex = chunk.at_or_before(left - k);
      return vertex == first_index ||
             chain.is_vertex(chain.point(chunk.at_or_before(vertex - 1)), chain.point(vertex), to);
    });
    if (back == 0 && started) break;
    left = static_cast<int>(chunk.at_or_before(left - back));
    const auto from = chain.point(left);
    const int forth = first_that_holds(last_index - right + 1, [&](int k) {
      const std::int64_t vertex = chunk.at_or_after(right + k);
      return vertex == last_index ||
             chain.is_vertex(from, chain.point(vertex), chain.point(chunk.at_or_after(vertex + 1)));
    });
    if (forth == 0) break;
    right = static_cast<int>(chunk.at_or_after(right + forth));
  }
  __syncwarp();
  clear_between_by_warp(chunk, left, right);
}

// Merges the chunk's tiles by runs: in `starts` the tiles that convex runs begin with. The whole block.
template <class Chain, class E>
__device__ void merge_by_runs(const Chain& chain, const Chunk<E, kBlock>& chunk, std::uint16_t* starts,
                              int* counts) {
  const int thread = static_cast<int>(threadIdx.x);
  const int tiles = chunk.tiles();
  starts[thread] = static_cast<std::uint16_t>(thread);
  __syncthreads();
  const int runs = compact_block<kBlock>(starts, tiles, counts,
                                         [&](int tile) { return !tile_joint_bends(chain, chunk, tile); });
  constexpr int kWarps = kBlock / 32;
#pragma unroll 1
  for (int reach = 1; reach < runs; reach *= 2) {
    __syncthreads();
    const int merges = (runs + reach - 1) / (2 * reach);
    const auto merge_at = [&](int i, auto merge) {
      const int first = 2 * reach * i;
      const int end = first + 2 * reach < runs ? starts[first + 2 * reach] : tiles;
      merge(starts[first], starts[first + reach], end);
    };
    if (merges > kWarpMerges) {
      // Neighbouring merges by threads of different warps, since each goes its own way.
      const int i = thread % 32 * kWarps + thread / 32;
      if (i < merges) {
        merge_at(i, [&](int first, int middle, int end) { merge_tiles(chain, chunk, first, middle, end); });
      }
    } else {
#pragma unroll 1
      for (int i = thread / 32; i < merges; i += kWarps) {
        merge_at(i, [&](int first, int middle, int end) { merge_runs(chain, chunk, first, middle, end); });
      }
    }
  }
  __syncthreads();
}

// Merges the chains of all tiles; then the chunk's end bends the last edge. `starts` and `counts`: of a
// block.
template <class Chain, class E, int Size>
__device__ void merge_all_tiles(const Chain& chain, const Chunk<E, Size>& chunk, std::uint16_t* starts,
                                int* counts) {
  const int rank = Team<Size>::rank();
  const int tiles = chunk.tiles();
  if constexpr (Size > 1) {
    for (int round = 0; round < kJointRounds; ++round) cut_tile_joints(chain, chunk);
  }
  if constexpr (Size == kBlock) {
    merge_by_runs(chain, chunk, starts, counts);
  } else {
    for (int reach = 1; reach < Size; reach *= 2) {
      Team<Size>::sync();
      if (rank % (2 * reach) == 0 && rank + reach < tiles) {
        merge_tiles(chain, chunk, rank, rank + reach, min(rank + 2 * reach, tiles));
      }
    }
    Team<Size>::sync();
  }
  if (rank == 0 && tiles > 0) {
    const std::int64_t last = chunk.at_or_before(tiles * kTile - 1);
    const ChainBridge<Chain> bridge(chain, 0, last, chunk.length, chunk.length);
    clear_between(chunk, static_cast<int>(bridge.left()), chunk.length);
  }
  Team<Size>::sync();
}

}  // namespace isofold::cuda
