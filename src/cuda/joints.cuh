// Joining neighbouring convex lists of points: what sweeps would wear away point by point is cut off by the
// bridge between each list and the next, all at once. The points stay; what is cut is a list of their numbers
// in shared memory.
#pragma once

#include <cstdint>

#include "cuda/point_list.cuh"
#include "cuda/search.cuh"

namespace isofold::cuda {

inline constexpr int kMostLists = 64;

struct JointScratch {
  int bounds[kMostLists + 1];  // list c holds the entries [bounds[c], bounds[c + 1])
  int cut_left[kMostLists];    // the bridge from list c to the next: the entries strictly between are gone
  int cut_right[kMostLists];
};

// The bridge of the lists [left, middle) and [middle, right), neither empty, by alternating tangents
// (chain_bridge.hpp): whether an entry is too near the joint to be an end of it changes once, and as one end
// moves away from the joint the other never comes back. `is_vertex` takes entries.
template <class IsVertex>
__device__ void bridge_lists(int left, int middle, int right, int* cut_left, int* cut_right,
                             IsVertex is_vertex) {
  int a = middle - 1;
  int b = middle;
  for (bool first = true;; first = false) {
    const int old_a = a;
    a -= first_that_holds(a - left + 1, [&](int k) { return is_vertex(old_a - k - 1, old_a - k, b); });
    if (a == old_a && !first) break;
    const int old_b = b;
    b += first_that_holds(right - b, [&](int k) { return is_vertex(a, old_b + k, old_b + k + 1); });
    if (b == old_b) break;
  }
  *cut_left = a;
  *cut_right = b;
}

// Bridges the lists `list` and the one after it, if both hold entries. One warp.
template <class IsVertex>
__device__ void bridge_joint(const std::uint16_t* order, int list, int lists, JointScratch& scratch,
                             IsVertex is_vertex) {
  const int* bounds = scratch.bounds;
  const int left = bounds[list];
  const int middle = bounds[list + 1];
  const int right = list + 1 < lists ? bounds[list + 2] : middle;
  int cut_left = middle - 1;
  int cut_right = middle;
  if (left < middle && middle < right) {
    bridge_lists(left, middle, right, &cut_left, &cut_right,
                 [&](int a, int b, int d) { return is_vertex(order[a], order[b], order[d]); });
  }
  if (threadIdx.x % 32 == 0) {
    scratch.cut_left[list] = cut_left;
    scratch.cut_right[list] = cut_right;
  }
}

// Whether no bridge has cut an entry.
__device__ inline bool outlasts_bridges(int entry, int lists, const JointScratch& scratch) {
  int list = 0;
#pragma unroll
  for (int step = kMostLists / 2; step > 0; step /= 2) {
    if (list + step < lists && scratch.bounds[list + step] <= entry) list += step;
  }
  return entry <= scratch.cut_left[list] && (list == 0 || entry >= scratch.cut_right[list - 1]);
}

// Cuts `lists` convex lists that stand one after the other in `order` where they join, and returns how many
// entries are left. What is cut is no vertex, whether the bridges fit each other or not. The whole block;
// `scratch.bounds` is set. Ends in step.
template <int Capacity, class IsVertex>
__device__ int cut_joints(std::uint16_t* order, int lists, JointScratch& scratch, int* counts,
                          IsVertex is_vertex) {
  __syncthreads();
#pragma unroll 1
  for (int list = static_cast<int>(threadIdx.x) / 32; list < lists; list += kBlock / 32) {
    bridge_joint(order, list, lists, scratch, is_vertex);
  }
  __syncthreads();
  return compact_block<Capacity>(order, scratch.bounds[lists], counts,
                                 [&](int entry) { return outlasts_bridges(entry, lists, scratch); });
}

// The same by one warp.
template <class IsVertex>
__device__ int cut_joints_by_warp(std::uint16_t* order, int lists, JointScratch& scratch,
                                  IsVertex is_vertex) {
  __syncwarp();
#pragma unroll 1
  for (int list = 0; list < lists; ++list) bridge_joint(order, list, lists, scratch, is_vertex);
  __syncwarp();
  return compact_warp(order, scratch.bounds[lists],
                      [&](int entry) { return outlasts_bridges(entry, lists, scratch); });
}

}  // namespace isofold::cuda
