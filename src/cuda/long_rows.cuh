// The first kernel for long rows: a block solves a chunk, stores it and climbs the tree.
#pragma once

#include <cstdint>

#include "cuda/solve.cuh"
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
    const DoubleDouble total = chunk.total_before(tile);
    slot.total_high[tile] = total.high;
    if (!chunk.exact) slot.total_low[tile] = total.low;
    if constexpr (E::kWeighted) {
      const DoubleDouble weight = chunk.weight_before(tile);
      slot.weight_high[tile] = weight.high;
      slot.weight_low[tile] = weight.low;
    }
  }
  if (tile == 0) {
    const int last = static_cast<int>(chunk.at_or_before(chunk.tiles() * kTile - 1));
    plan.chunks[id] = {0,
                       last,
                       0,
                       places.all - 1,
                       listed ? places.all : 0,
                       chunk.exact ? 1 : 0,
                       chunk.error,
                       chunk.weight_error,
                       0.0};
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

template <class E>
__global__ void __launch_bounds__(kBlock, kResident<LongShared<E>>) solve_chunks(const Plan<E> plan) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<LongShared<E>*>(memory);
  const Team<kBlock> team{&shared.team};
  const std::int64_t id = blockIdx.x;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t number = id - place.row.first_chunk;
  Chunk<E, kBlock> chunk = long_chunk(plan, place, number, &shared.storage);
  ChunkFacts facts = solve_chunk<E, kBlock>(chunk, team, &shared.hull);
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
  __syncthreads();
  climb(plan, place, number, shared.node, &shared.climbing, team);
}

}  // namespace isofold::cuda
