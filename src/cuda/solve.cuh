// From a chunk's elements to its hull: what rows of one chunk and chunks of long rows have in common.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/hull.cuh"
#include "cuda/plan.cuh"

namespace isofold::cuda {

// Blocks that a multiprocessor of 228 KiB of shared memory (Hopper) holds at once, each with 1 KiB for the
// system: what the compiler may spend registers by.
template <class Shared>
inline constexpr int kResident = std::max<int>(1, 228 * 1024 / (sizeof(Shared) + 1024));

// The hull of a chunk, staged before, or a single point if it may not be fitted.
template <class E, int Size>
__device__ ChunkFacts solve_staged_chunk(Chunk<E, Size>& chunk, const Team<Size>& team,
                                         HullScratch<E, Size>* scratch, bool filter = true) {
  const ChunkFacts facts = sum_tiles(chunk, team);
  if (facts.allowed) {
    chunk_hull(chunk, facts, team, scratch, filter);
  } else {
    chunk.mask(Team<Size>::rank()) = Team<Size>::rank() == 0 ? 1U : 0U;
    Team<Size>::sync();
  }
  return facts;
}

template <class E, int Size>
__device__ ChunkFacts solve_chunk(Chunk<E, Size>& chunk, const Team<Size>& team,
                                  HullScratch<E, Size>* scratch, bool filter = true) {
  stage(chunk);
  Team<Size>::sync();
  return solve_staged_chunk(chunk, team, scratch, filter);
}

template <class E>
__device__ Chunk<E, kBlock> long_chunk(const Plan<E>& plan, const LongRowPlace& place, std::int64_t number,
                                       ChunkStorage<E, kBlock>* storage) {
  const std::int64_t origin = number * kLongChunk;
  const std::int64_t left = place.row.length - origin;
  return {storage, plan.elements.from(place.row.begin), origin,
          static_cast<int>(left < kLongChunk ? left : kLongChunk)};
}

}  // namespace isofold::cuda
