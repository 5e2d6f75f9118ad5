// The first two kernels for long rows: warps scan their groups, then a warp filters each chunk and stores its
// hull where few points can be vertices or the values never fall; the rest is left to long_rows.cuh.
#pragma once

#include <cstdint>

#include "cuda/plan.cuh"
#include "cuda/sparse_hull.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

inline constexpr int kScanWarps = 8;  // of a block
inline constexpr int kFilterWarps = 4;
inline constexpr int kGroupsAWarp = 4;  // that a warp scans one after the other: half a chunk

template <class E>
struct alignas(16) ScanShared {
  Stage<E> warps[kScanWarps];
};

// Leaves for the filter what it found, by tile and by group.
template <class E>
__global__ void __launch_bounds__(32 * kScanWarps, 3) scan_groups(const Plan<E> plan) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  auto& stage = reinterpret_cast<ScanShared<E>*>(memory)->warps[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t share = static_cast<std::int64_t>(blockIdx.x) * kScanWarps + threadIdx.x / 32;
  const std::int64_t id = share / (kGroups / kGroupsAWarp);
  const int begin = static_cast<int>(share % (kGroups / kGroupsAWarp)) * kGroupsAWarp;
  if (id >= plan.chunks_bound) return;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t origin = (id - place.row.first_chunk) * kLongChunk;
  const std::int64_t rest = place.row.length - origin;
  const int length = static_cast<int>(rest < kLongChunk ? rest : kLongChunk);
  const E row = plan.elements.from(place.row.begin);
  const int end = min((begin + kGroupsAWarp) * kGroup, length);
  stage_elements(stage, row, origin + begin * kGroup, end - begin * kGroup);
#pragma unroll 1
  for (int first = begin * kGroup; first < end; first += kGroup) {
    ScanFacts facts;
    const TileScan<E> tile = scan_group<E>(stage, min(end - first, kGroup), row.sign, facts, [&] {
      stage_elements(stage, row, origin + first + kGroup, end - first - kGroup);
    });
    const std::int64_t at = id * kScanTiles + first / kTile + lane;
    plan.tile_totals[at] = tile.total.high;
    if constexpr (!kPlainTiles<E>) plan.tile_total_lows[at] = tile.total.low;
    if constexpr (E::kWeighted) {
      plan.tile_weights[at] = tile.weight.high;
      plan.tile_weight_lows[at] = tile.weight.low;
    }
    plan.tile_depths[at] = tile.depth;
    if (lane == 0) plan.group_facts[id * kGroups + first / kGroup] = facts;
  }
}

// Stores a chunk's record and sums for its tree. `count` vertices are listed; 0: the chunk is sorted, and has
// a mask.
template <class E>
__device__ void store_sums(const Plan<E>& plan, std::int64_t id, const SparseChunk<E, kScanTiles>& chunk,
                           int last, int count) {
  const bool exact = kPlainTiles<E> && chunk.exact;
  plan.chunks[id] = {count, exact ? 1 : 0, count == 0 ? 1 : 0, chunk.error, chunk.weight_error, 0.0};
  plan.ranges[id] = {0, count == 0 ? kMasked : static_cast<std::uint16_t>(count), 0,
                     static_cast<std::uint16_t>(last)};
  plan.sums[0][id] = {chunk.total,           chunk.weight,
                      chunk.facts.magnitude, chunk.facts.weight_magnitude,
                      chunk.facts.unit,      chunk.facts.weight_unit};
}

// Finds the exact totals of a rough chunk, and stores them for its first `count` points in order.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE DoubleDouble store_rough_totals(const SparseChunk<E, kScanTiles> chunk,
                                                           Slot<E>& slot, int count) {
  const auto& points = chunk.scratch.points;
  int next = -1;  // the lane's next vertex
  int position = -1;
  const auto at = [&](int i) { return i < count ? static_cast<int>(points.position[points.order[i]]) : -1; };
  return visit_totals(chunk.row, chunk.origin, chunk.length, chunk.facts.magnitude,
                      [&](int i, DoubleDouble total) {
                        if (next < 0) {
                          next = 0;
                          for (int high = count; next < high;) {
                            const int middle = (next + high) / 2;
                            if (at(middle) < i) {
                              next = middle + 1;
                            } else {
                              high = middle;
                            }
                          }
                          position = at(next);
                        }
                        if (i != position) return;
                        slot.total_high[next] = total.high;
                        slot.total_low[next] = total.low;
                        position = at(++next);
                      });
}

// Stores the first `count` points in order as the vertices of a chunk, and its sums, for its tree.
template <class E>
__device__ void store_sparse_chunk(const Plan<E>& plan, std::int64_t id, SparseChunk<E, kScanTiles>& chunk,
                                   int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto& points = chunk.scratch.points;
  Slot<E>& slot = plan.slots[id];
  for (int i = lane; i < count; i += 32) {
    const int from = points.order[i];
    slot.places[i] = points.position[from];
    slot.total_high[i] = points.total_high[from];
    slot.total_low[i] = static_cast<double>(points.total_low[from]);
    if constexpr (E::kWeighted) {
      slot.weight_high[i] = points.weight_high[from];
      slot.weight_low[i] = points.weight_low[from];
    }
  }
  if constexpr (kPlainTiles<E>) {
    if (chunk.rough) {
      __syncwarp();
      chunk.total = store_rough_totals(chunk, slot, count);
      chunk.error = pair_error(chunk.facts.magnitude, chunk.facts.unit, false);
    }
  }
  if (lane == 0) store_sums(plan, id, chunk, points.position[points.order[count - 1]], count);
}

// Stores a chunk whose values never fall: its vertices are the points where they rise, and its first.
template <class E>
__device__ void store_sorted_chunk(const Plan<E>& plan, std::int64_t id,
                                   const SparseChunk<E, kScanTiles>& chunk) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Slot<E>& slot = plan.slots[id];
  const E row = chunk.row.from(chunk.origin);
  constexpr int kAtOnce = 16;  // tiles whose elements are on their way together
  int last = 0;
  unsigned some = 0;           // of the last 32 tiles: the mask word is not empty
  typename E::Value before{};  // the last value of the tile before
#pragma unroll 1
  for (int first = 0; first < kScanTiles; first += kAtOnce) {
    typename E::Value values[kAtOnce];
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t) {
      const int i = min((first + t) * kTile + lane, chunk.length - 1);
      values[t] = row.values[i];
    }
#pragma unroll
    for (int t = 0; t < kAtOnce; ++t) {
      const int tile = first + t;
      const auto value = values[t];
      auto previous = __shfl_up_sync(0xffffffffU, value, 1);
      if (lane == 0) previous = before;
      before = __shfl_sync(0xffffffffU, value, 31);
      const bool rises = row.sign > 0 ? previous < value : previous > value;
      const int i = tile * kTile + lane;
      const unsigned mask = __ballot_sync(0xffffffffU, i < chunk.length && (i == 0 || rises));
      if (mask != 0) last = tile * kTile + 31 - __clz(static_cast<int>(mask));
      if (lane == 0) slot.places[tile] = mask;
      some = some >> 1 | (mask != 0 ? 0x80000000U : 0U);
      if (tile % 32 == 31 && lane == 0) slot.occupied[tile / 32] = some;
    }
  }
  for (int tile = lane; tile < chunk.tiles(); tile += 32) {
    const DoubleDouble total = chunk.total_before(tile);
    slot.total_high[tile] = total.high;
    slot.total_low[tile] = total.low;
    if constexpr (E::kWeighted) {
      const DoubleDouble weight = chunk.weight_before(tile);
      slot.weight_high[tile] = weight.high;
      slot.weight_low[tile] = weight.low;
    }
  }
  if (lane == 0) store_sums(plan, id, chunk, last, 0);
}

template <class E>
struct FilterShared {
  SparseScratch<E, kScanTiles> warps[kFilterWarps];
};

// Blocks of the filter that a multiprocessor of 228 KiB of shared memory holds at once: five at 96 registers
// a thread are faster than six at 80.
template <class Shared>
inline constexpr int kFilterResident =
    std::max<int>(1, std::min<int>(5, 227 * 1024 / (sizeof(Shared) + 1024)));

template <class E>
__global__ void __launch_bounds__(32 * kFilterWarps, kFilterResident<FilterShared<E>>)
    filter_chunks(const Plan<E> plan) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  auto& scratch = reinterpret_cast<FilterShared<E>*>(memory)->warps[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * kFilterWarps + threadIdx.x / 32;
  if (id >= plan.chunks_bound) return;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t number = id - place.row.first_chunk;
  const std::int64_t origin = number * kLongChunk;
  const std::int64_t left = place.row.length - origin;
  const int length = static_cast<int>(left < kLongChunk ? left : kLongChunk);
  SparseChunk<E, kScanTiles> chunk{scratch, plan.elements.from(place.row.begin), origin, length, {}};
  // All loads are in flight before any is stored.
  TileScan<E> scanned[kGroups];
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int tile = group * kGroupTiles + lane;
    const std::int64_t at = id * kScanTiles + min(tile, chunk.tiles() - 1);
    scanned[group].total.high = plan.tile_totals[at];
    if constexpr (!kPlainTiles<E>) scanned[group].total.low = plan.tile_total_lows[at];
    if constexpr (E::kWeighted) scanned[group].weight = {plan.tile_weights[at], plan.tile_weight_lows[at]};
    scanned[group].depth = plan.tile_depths[at];
  }
  const int groups = (length + kGroup - 1) / kGroup;
  chunk.facts = facts_of_groups(plan.group_facts + id * kGroups, groups);
#pragma unroll
  for (int group = 0; group < kGroups; ++group) {
    const int tile = group * kGroupTiles + lane;
    if (tile < chunk.tiles()) scratch.set_tile(tile, scanned[group]);
  }
  __syncwarp();
  const bool worth = worth_filtering<E>(chunk.facts, length);
  const int count = worth ? find_sparse_hull(chunk) : 0;
  const bool sorted = count == 0 && sums_known<E>(chunk.facts) && !is_rough<E>(chunk.facts) &&
                      chunk.facts.sorted == groups && groups_join(chunk);
  if (sorted) {
    if (!worth) sum_before_tiles(chunk);
    store_sorted_chunk(plan, id, chunk);
  }
  if (count > 0) store_sparse_chunk(plan, id, chunk, count - 1);
  if (lane != 0) return;
  if (number % kFanIn == 0) {
    plan.live[node_id(place, 1, number / kFanIn)] = live_chunks(number, number, place.row.chunks);
    plan.first_chunks[atomicAdd(&plan.work->first_chunks, 1)] = static_cast<std::int32_t>(id);
  }
  if (count == 0 && !sorted) {
    plan.dense_chunks[atomicAdd(&plan.work->dense_chunks, 1)] = static_cast<std::int32_t>(id);
    atomicAdd(plan.dense_children + node_id(place, 1, number / kFanIn), 1);
  }
}

}  // namespace isofold::cuda
