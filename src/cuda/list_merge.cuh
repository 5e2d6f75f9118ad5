// Merging neighbouring convex lists of points, pairwise, by bridges: what sweeps would wear away point by
// point is cut off at once. The points stay; what is merged is a list of their numbers in shared memory.
#pragma once

#include <cstdint>

#include "cuda/point_list.cuh"

namespace isofold::cuda {

inline constexpr int kMostLists = 32;

struct ListMergeScratch {
  int bounds[kMostLists + 1];    // list c holds the entries [bounds[c], bounds[c + 1])
  int cut_left[kMostLists / 2];  // a pair's bridge: the entries strictly between are gone
  int cut_right[kMostLists / 2];
};

// The last entry in [low, high) for which `holds` is true: it is for `low`, and for all entries up to that
// one. A warp.
template <class Holds>
__device__ int last_that_holds(int low, int high, Holds holds) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  while (high - low > 1) {
    const int step = (high - low + 31) / 32;
    const int at = low + lane * step;
    const unsigned yes = __ballot_sync(0xffffffffU, lane == 0 || (at < high && holds(at)));
    const int found = __ffs(static_cast<int>(~yes)) - 1;  // the first lane that says no; -1: none
    const int last = (found < 0 ? 32 : found) - 1;
    high = min(high, low + (last + 1) * step);
    low = low + last * step;
  }
  return low;
}

// The bridge of the lists [left, middle) and [middle, right) of `order`, by alternating tangents
// (chain_bridge.hpp).
template <class IsVertex>
__device__ void bridge_lists(const std::uint16_t* order, int left, int middle, int right, int* cut_left,
                             int* cut_right, IsVertex is_vertex) {
  int a = middle - 1;
  int b = middle;
  for (bool first = true;; first = false) {
    const int old_a = a;
    a = last_that_holds(left, a + 1,
                        [&](int i) { return i == left || is_vertex(order[i - 1], order[i], order[b]); });
    if (a == old_a && !first) break;
    const int old_b = b;
    // The same from the right: entries are counted from the list's last one backwards.
    const int reach = last_that_holds(0, right - b, [&](int i) {
      return i == 0 || is_vertex(order[a], order[right - 1 - i], order[right - i]);
    });
    b = right - 1 - reach;
    if (b == old_b) break;
  }
  *cut_left = a;
  *cut_right = b;
}

// Merges `lists` convex lists that stand one after the other in `order`, and returns how many entries are
// left. The whole block; `scratch.bounds` is set. Ends in step.
template <int Capacity, class IsVertex>
__device__ int merge_lists(std::uint16_t* order, int lists, ListMergeScratch& scratch, IsVertex is_vertex) {
  constexpr int kShare = (Capacity + kBlock - 1) / kBlock;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const auto bound = [&](int list) { return scratch.bounds[min(list, lists)]; };
  __syncthreads();
#pragma unroll 1
  for (int reach = 1; reach < lists; reach *= 2) {
    const int pairs = (lists + 2 * reach - 1) / (2 * reach);
#pragma unroll 1
    for (int pair = warp; pair < pairs; pair += kBlock / 32) {
      const int left = bound(2 * reach * pair);
      const int middle = bound(2 * reach * pair + reach);
      const int right = bound(2 * reach * (pair + 1));
      int cut_left = middle - 1;
      int cut_right = middle;
      if (left < middle && middle < right) {
        bridge_lists(order, left, middle, right, &cut_left, &cut_right, is_vertex);
      }
      if (thread % 32 == 0) {
        scratch.cut_left[pair] = cut_left;
        scratch.cut_right[pair] = cut_right;
      }
    }
    __syncthreads();
    const int count = bound(lists);
    const auto removed_before = [&](int entry) {
      int removed = 0;
      for (int pair = 0; pair < pairs; ++pair) {
        removed += max(min(entry, scratch.cut_right[pair]) - (scratch.cut_left[pair] + 1), 0);
      }
      return removed;
    };
    std::uint16_t kept[kShare];
    int places[kShare];
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      const int entry = i * kBlock + thread;
      places[i] = -1;
      if (entry >= count) continue;
      const int removed = removed_before(entry);
      if (removed_before(entry + 1) != removed) continue;  // gone
      kept[i] = order[entry];
      places[i] = entry - removed;
    }
    const int own_bound =
        thread <= lists ? scratch.bounds[thread] - removed_before(scratch.bounds[thread]) : 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kShare; ++i) {
      if (places[i] >= 0) order[places[i]] = kept[i];
    }
    if (thread <= lists) scratch.bounds[thread] = own_bound;
    __syncthreads();
  }
  return bound(lists);
}

}  // namespace isofold::cuda
