// The hull of a scanned chunk, by one warp, where few points can be vertices: two polylines, each finer than
// the one before, the points that dip below the second, and sweeps over those.
#pragma once

#include <cstdint>

#include "cuda/coarse_polyline.cuh"
#include "cuda/fine_polyline.cuh"

namespace isofold::cuda {

// Moves the first `count` points in order to the front, in place: none moves back.
template <class E, int Tiles>
__device__ void pack_points(const SparseChunk<E, Tiles>& chunk, int count) {
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
template <class E, int Tiles>
__device__ int find_sparse_hull(SparseChunk<E, Tiles>& chunk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& scratch = chunk.scratch;
  const Team<32> team{nullptr};
  sum_before_tiles(chunk);
  int alive = list_alive_tiles(chunk);
  const int corners = find_corners(chunk, alive);
  alive = choose_points(chunk, alive, corners);
  int count = 0;
  int thinned = -1;  // what the last thinning left
  for (int first = 0;;) {
    const bool done = first >= alive;
    if (!done) {
      const bool mine = first + lane < alive;
      const SparseTile<E, Tiles> tile(chunk, scratch.alive[mine ? first + lane : 0]);
      const std::uint32_t chosen = mine ? scratch.chosen()[tile.number] : 0U;
      const auto places = team.scan(__popc(chosen));
      // As many tiles as fit, one place left for the end.
      const bool fits = count + places.before + __popc(chosen) < kSparsePoints;
      const unsigned fitting = __ballot_sync(0xffffffffU, fits);
      if (fits && chosen != 0) list_points(tile, chosen, count + places.before);
      const int taken = __popc(fitting);
      const int listed = __shfl_sync(0xffffffffU, places.before + __popc(chosen), max(taken - 1, 0));
      if (taken > 0) count += listed;
      first += taken;
      __syncwarp();
      if (taken == 32 || first >= alive) continue;
      if (taken == 0 && count == thinned) return 0;  // full, and thinning does not help
    } else {
      if (lane == 0) list_end(chunk, count);
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
