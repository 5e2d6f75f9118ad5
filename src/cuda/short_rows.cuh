// The kernel for rows of one chunk: each is solved and written by one team.
#pragma once

#include <cstdint>

#include "cuda/solve.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

template <class E, int Size>
struct RowShared {
  ChunkStorage<E, Size> storage;
  std::conditional_t<Size >= 32, HullScratch<E, Size >= 32 ? Size : 32>, char> hull;
  double edge_values[kBlock];
  unsigned char state[kBlock / Size];
};

// Rows of equal length stand one after the other: the block carries them in and out together, so that
// neighbouring threads touch neighbouring elements however short the rows are. Teams of less than a warp.
template <class E, int Size>
__device__ void fit_short_rectangle(const Plan<E>& plan, RowShared<E, Size>& shared, const Team<Size>& team) {
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * Team<Size>::kTeams;
  const std::int64_t rows_left = plan.rows - first_row;
  const int rows = static_cast<int>(rows_left < Team<Size>::kTeams ? rows_left : Team<Size>::kTeams);
  const int length = static_cast<int>(plan.row_length);
  const int count = rows * length;
  const std::int64_t base = first_row * length;
  const float inverse = 1.0F / static_cast<float>(length);
  // element / length, exact for such small numbers: the product is off by less than half of 1 / length.
  const auto row_of = [&](int element) {
    return static_cast<int>((static_cast<float>(element) + 0.5F) * inverse);
  };
  auto& storage = shared.storage;
#pragma unroll 4
  for (int e = static_cast<int>(threadIdx.x); e < count; e += kBlock) {
    const int row = row_of(e);
    const int slot = staged(e - row * length);
    __pipeline_memcpy_async(storage.regions[row].values + slot, plan.elements.values + base + e,
                            sizeof(typename E::Value));
    if constexpr (E::kWeighted) {
      __pipeline_memcpy_async(storage.regions[row].weights + slot, plan.elements.weights + base + e,
                              sizeof(typename E::Weight));
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  const int own = Team<Size>::index();
  const std::int64_t begin = base + static_cast<std::int64_t>(own) * length;
  bool refused = false;
  bool totals = false;  // the fit is where the running totals were
  if (own < rows) {
    Chunk<E, Size> chunk{&storage, plan.elements.from(begin), 0, length};
    const ChunkFacts facts = solve_staged_chunk<E, Size>(chunk, team, nullptr);
    refused = !facts.allowed;
    if (refused) {
      write_refused<Size>(plan.output, begin, length, true);
    } else {
      fit_chunk(chunk, plan.output, begin, 0.0, 0.0, true, shared.edge_values);
    }
    totals = chunk.exact;
  }
  if (plan.output.fit == nullptr || plan.output.to_input_type == 0) return;
  if (Team<Size>::rank() == 0) shared.state[own] = refused ? 2 : (totals ? 1 : 0);
  __syncthreads();
  auto* fit = static_cast<typename E::Value*>(plan.output.fit) + base;
#pragma unroll 4
  for (int e = static_cast<int>(threadIdx.x); e < count; e += kBlock) {
    const int row = row_of(e);
    const int slot = staged(e - row * length);
    const int state = shared.state[row];
    if (state == 0) fit[e] = storage.regions[row].values[slot];
    if constexpr (!E::kWeighted) {
      if (state == 1) fit[e] = static_cast<typename E::Value>(storage.regions[row].totals[slot]);
    }
  }
}

// Rows of at most 32 * Size elements, a team each, from running totals to fit. `row_class`: which list of row
// numbers, where rows are ragged or the scan has left some.
template <class E, int Size>
__global__ void __launch_bounds__(kBlock, kResident<RowShared<E, Size>>)
    fit_short_rows(const Plan<E> plan, int row_class, unsigned blocks) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  auto& shared = *reinterpret_cast<RowShared<E, Size>*>(memory);
  const Team<Size> team{&shared.storage.scratch};
  if constexpr (Size < 32) {
    if (plan.offsets == nullptr && plan.lane_rows == 0) {
      fit_short_rectangle<E, Size>(plan, shared, team);
      return;
    }
  }
  const bool left_over = row_class >= kFirstScanned || plan.lane_rows != 0;
  const auto count = static_cast<std::int64_t>((left_over ? plan.dense_counts : plan.counts)[row_class]);
  const std::int64_t* numbers = (left_over ? plan.dense_rows : plan.class_rows)[row_class];
  // Few blocks, since nobody knows how many rows there are for them, and often there is none.
#pragma unroll 1
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * Team<Size>::kTeams + Team<Size>::index();
       i < count; i += static_cast<std::int64_t>(blocks) * Team<Size>::kTeams) {
    const std::int64_t number = numbers[i];
    const std::int64_t begin = plan.offsets == nullptr ? number * plan.row_length : plan.offsets[number];
    const std::int64_t length = plan.offsets == nullptr ? plan.row_length : plan.offsets[number + 1] - begin;
    Chunk<E, Size> chunk{&shared.storage, plan.elements.from(begin), 0, static_cast<int>(length)};
    HullScratch<E, Size>* scratch = nullptr;
    if constexpr (Size >= 32) scratch = &shared.hull;
    Team<Size>::sync();  // the row before is done with
    const ChunkFacts facts = solve_chunk<E, Size>(chunk, team, scratch);
    if (facts.allowed) {
      write_chunk(chunk, plan.output, begin, 0.0, 0.0, true, shared.edge_values);
    } else {
      write_refused<Size>(plan.output, begin, chunk.length, true);
    }
  }
}

}  // namespace isofold::cuda
