// The second kernel for long rows: blocks solve the chunks that the scan has left, merge nodes and climb the
// tree.
#pragma once

#include <cstdint>

#include "cuda/solve.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/tree.cuh"

namespace isofold::cuda {

template <class E>
struct LongShared {
  union {
    struct {
      ChunkStorage<E, kBlock> storage;
      HullScratch<E, kBlock> hull;
    };
    NodeScratch<E> node;
  };
  TeamScratch team;
  SharedNode climbing;
  int taken;
};

// Stores a chunk's vertices and sums for its tree.
template <class E>
__device__ void store_chunk(const Plan<E>& plan, std::int64_t id, const Chunk<E, kBlock>& chunk,
                            const ChunkFacts& facts, const Team<kBlock>& team) {
  const int tile = static_cast<int>(threadIdx.x);
  Slot<E>& slot = plan.slots[id];
  const std::uint32_t mask = chunk.mask(tile);
  const auto places = team.scan(__popc(mask));
  const bool listed = places.all <= kBlock;
  if (listed) {
    int place = places.before;
    if (chunk.exact) {
      for (std::uint32_t left = mask; left != 0; left &= left - 1) {
        const int i = tile * kTile + __ffs(static_cast<int>(left)) - 1;
        slot.places[place] = i;
        slot.total_low[place] = 0;
        slot.total_high[place++] = chunk.exact_total(i);
      }
    } else if (mask != 0) {
      DoubleDouble total = chunk.total_before(tile);
      DoubleDouble weight = chunk.weight_before(tile);
      const int last = 31 - __clz(static_cast<int>(mask));
      for (int k = 0;; ++k) {
        const int i = tile * kTile + k;
        if ((mask >> k & 1U) != 0) {
          slot.places[place] = i;
          slot.total_high[place] = total.high;
          slot.total_low[place] = total.low;
          if constexpr (E::kWeighted) {
            slot.weight_high[place] = weight.high;
            slot.weight_low[place] = weight.low;
          }
          ++place;
        }
        if (k == last) break;
        add_element<E>(chunk, i, total, weight);
      }
    }
  } else {
    slot.places[tile] = mask;
    const unsigned some = __ballot_sync(0xffffffffU, mask != 0);
    if (tile % 32 == 0) slot.occupied[tile / 32] = some;
    const DoubleDouble total = chunk.total_before(tile);
    slot.total_high[tile] = total.high;
    slot.total_low[tile] = total.low;
    if constexpr (E::kWeighted) {
      const DoubleDouble weight = chunk.weight_before(tile);
      slot.weight_high[tile] = weight.high;
      slot.weight_low[tile] = weight.low;
    }
  }
  if (tile == 0) {
    const int last = static_cast<int>(chunk.at_or_before(chunk.tiles() * kTile - 1));
    plan.chunks[id] = {listed ? places.all : 0, chunk.exact ? 1 : 0, 0, chunk.error, chunk.weight_error, 0.0};
    plan.ranges[id] = {0, listed ? static_cast<std::uint16_t>(places.all) : kMasked, 0,
                       static_cast<std::uint16_t>(last)};
    SpanSums sums{};
    sums.total = chunk.total_before(kBlock);
    sums.weight = chunk.weight_before(kBlock);
    sums.magnitude = facts.magnitude;
    sums.weight_magnitude = facts.weight_magnitude;
    sums.unit = facts.unit;
    sums.weight_unit = facts.weight_unit;
    plan.sums[0][id] = sums;
  }
}

// Solves a dense chunk and stores it.
template <class E>
__device__ void solve_dense_chunk(const Plan<E>& plan, std::int64_t id, const LongRowPlace& place,
                                  LongShared<E>& shared, const Team<kBlock>& team) {
  const std::int64_t number = id - place.row.first_chunk;
  Chunk<E, kBlock> chunk = long_chunk(plan, place, number, &shared.storage);
  const int groups = (chunk.length + kGroup - 1) / kGroup;
  const int rising = facts_of_groups(plan.group_facts + id * kGroups, groups).rising;
  ChunkFacts facts = solve_chunk<E, kBlock>(chunk, team, &shared.hull, 2 * rising <= groups);
  if (!facts.allowed) {
    // The row comes out NaN. Its tree goes on with a chunk that holds nothing, so that nobody meets a NaN.
    chunk.exact = !E::kWeighted;
    chunk.end_total = 0;
    if (threadIdx.x == 0) {
      plan.refused[place.number] = 1;
      if constexpr (E::kWeighted) {
        auto& sums = shared.storage.own_pairs();
        for (int t : {0, kBlock}) {
          sums.total_high[t] = 0;
          sums.total_low[t] = 0;
          sums.weight_high[t] = t == 0 ? 0.0 : 1.0;
          sums.weight_low[t] = 0;
        }
      } else {
        shared.storage.region().totals[0] = 0;
      }
    }
    facts.magnitude = 0;
    facts.unit = 0;
    facts.weight_magnitude = 1;
    facts.weight_unit = 0;
    chunk.error = 0;
    chunk.weight_error = 0;
    __syncthreads();
  }
  store_chunk(plan, id, chunk, facts, team);
}

// Blocks take the dense chunks first, then the nodes of level 1, all or those that warps have left. A node
// that has dense chunks is merged by the block that solves the last of them, any other by the block that
// takes it.
template <class E>
__global__ void __launch_bounds__(kBlock, kResident<LongShared<E>>)
    solve_and_merge(const Plan<E> plan, int left_over, int blocks) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  auto& shared = *reinterpret_cast<LongShared<E>*>(memory);
  const Team<kBlock> team{&shared.team};
  const int dense = plan.work->dense_chunks;
  const std::int32_t* nodes = left_over != 0 ? plan.block_nodes : plan.first_chunks;
  const int all = dense + (left_over != 0 ? plan.work->block_nodes : plan.work->first_chunks);
  for (int turn = static_cast<int>(blockIdx.x);; turn += blocks) {
    // Nodes take about as long as each other, and dense chunks do not.
    __syncthreads();
    if (dense > 0 && threadIdx.x == 0) shared.taken = atomicAdd(&plan.work->taken, 1);
    __syncthreads();
    const int taken = dense > 0 ? shared.taken : turn;
    if (taken >= all) return;
    const std::int64_t id = taken < dense ? plan.dense_chunks[taken] : nodes[taken - dense];
    LongRowPlace place;
    find_chunk(plan, id, place);
    const std::int64_t node = (id - place.row.first_chunk) / kFanIn;
    const int dense_children = plan.dense_children[node_id(place, 1, node)];
    if (taken < dense) {
      solve_dense_chunk(plan, id, place, shared, team);
      __syncthreads();
      if (!arrives_last(plan, place, 1, node, dense_children, &shared.climbing)) continue;
    } else if (dense_children > 0) {
      continue;
    }
    climb(plan, place, node, shared.node, &shared.climbing, team);
  }
}

}  // namespace isofold::cuda
