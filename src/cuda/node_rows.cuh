// The rows of each node, one node after the other. Their order within a node is whatever the threads make it:
// integer sums do not depend on it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/start_kernel.cuh"
#include "cuda/team.cuh"
#include "isofold/histogram.hpp"

namespace isofold::cuda {

inline constexpr int kSortThreads = 256;
inline constexpr int kSortRowsAThread = 32;
inline constexpr std::int64_t kSortRows = kSortThreads * kSortRowsAThread;
inline constexpr int kSharedNodes = 4096;  // up to these, blocks count in shared memory first

struct NodeRows {
  const std::int32_t* node_ids;
  const std::int64_t* subset;
  std::int64_t terms;
  std::int64_t rows;
  std::int32_t nodes;
  std::int64_t chunk_rows;
  std::int32_t* counts;        // of each node; zeroed before
  std::int32_t* next;          // where each node's next row goes
  std::int64_t* starts;        // nodes + 1: where each node's rows begin
  std::int64_t* chunk_starts;  // nodes + 1: likewise its chunks
  std::int32_t* order;         // the rows
  std::int32_t* fault;         // or nullptr
};

struct Term {
  std::int32_t row;
  std::int32_t node;  // -1: in none
};

__device__ inline Term term_at(const NodeRows& sort, std::int64_t i) {
  const std::int64_t row = sort.subset != nullptr ? sort.subset[i] : i;
  if (row < 0 || row >= sort.rows) {
    if (sort.fault != nullptr) *sort.fault = 1;  // whoever stores it stores the same
    return {0, -1};
  }
  const std::int32_t node = sort.node_ids != nullptr ? sort.node_ids[row] : 0;
  if (node < -1 || node >= sort.nodes) {
    if (sort.fault != nullptr) *sort.fault = 1;
    return {0, -1};
  }
  return {static_cast<std::int32_t>(row), node};
}

// Calls use(term) for the block's share of the rows.
template <class Use>
__device__ void for_block_terms(const NodeRows& sort, const Use& use) {
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kSortRows + threadIdx.x;
  for (int k = 0; k < kSortRowsAThread; ++k) {
    const std::int64_t i = first + std::int64_t{k} * kSortThreads;
    if (i >= sort.terms) return;
    const Term term = term_at(sort, i);
    if (term.node >= 0) use(term);
  }
}

__device__ inline void clear_words(std::int32_t* words, std::int32_t count) {
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < count; i += kSortThreads) words[i] = 0;
}

__global__ void __launch_bounds__(kSortThreads) count_node_rows(const NodeRows sort) {
  begin_kernel();
  if (sort.nodes > kSharedNodes) {
    for_block_terms(sort, [&](Term term) { atomicAdd(sort.counts + term.node, 1); });
    return;
  }
  auto* counts = reinterpret_cast<std::int32_t*>(dynamic_shared());
  clear_words(counts, sort.nodes);
  __syncthreads();
  for_block_terms(sort, [&](Term term) { atomicAdd(counts + term.node, 1); });
  __syncthreads();
  for (std::int32_t n = static_cast<std::int32_t>(threadIdx.x); n < sort.nodes; n += kSortThreads) {
    if (counts[n] != 0) atomicAdd(sort.counts + n, counts[n]);
  }
}

// One warp: nodes are few next to rows.
__global__ void __launch_bounds__(32) start_node_rows(const NodeRows sort) {
  begin_kernel();
  const int lane = static_cast<int>(threadIdx.x);
  std::int64_t rows_before = 0;
  std::int64_t chunks_before = 0;
  for (std::int32_t base = 0; base < sort.nodes; base += 32) {
    const std::int32_t node = base + lane;
    const std::int64_t rows = node < sort.nodes ? sort.counts[node] : 0;
    const std::int64_t chunks = (rows + sort.chunk_rows - 1) / sort.chunk_rows;
    std::int64_t row_sum = rows;
    std::int64_t chunk_sum = chunks;
    for (int step = 1; step < 32; step *= 2) {
      const std::int64_t more_rows = __shfl_up_sync(0xffffffffU, row_sum, step);
      const std::int64_t more_chunks = __shfl_up_sync(0xffffffffU, chunk_sum, step);
      if (lane >= step) {
        row_sum += more_rows;
        chunk_sum += more_chunks;
      }
    }
    if (node < sort.nodes) {
      sort.starts[node] = rows_before + row_sum - rows;
      sort.chunk_starts[node] = chunks_before + chunk_sum - chunks;
      sort.next[node] = static_cast<std::int32_t>(rows_before + row_sum - rows);
    }
    rows_before += __shfl_sync(0xffffffffU, row_sum, 31);
    chunks_before += __shfl_sync(0xffffffffU, chunk_sum, 31);
  }
  if (lane == 0) {
    sort.starts[sort.nodes] = rows_before;
    sort.chunk_starts[sort.nodes] = chunks_before;
  }
}

__global__ void __launch_bounds__(kSortThreads) place_node_rows(const NodeRows sort) {
  begin_kernel();
  if (sort.nodes > kSharedNodes) {
    for_block_terms(sort, [&](Term term) { sort.order[atomicAdd(sort.next + term.node, 1)] = term.row; });
    return;
  }
  // A block takes room for all its rows of a node at once.
  auto* places = reinterpret_cast<std::int32_t*>(dynamic_shared());
  clear_words(places, sort.nodes);
  __syncthreads();
  for_block_terms(sort, [&](Term term) { atomicAdd(places + term.node, 1); });
  __syncthreads();
  for (std::int32_t n = static_cast<std::int32_t>(threadIdx.x); n < sort.nodes; n += kSortThreads) {
    if (places[n] != 0) places[n] = atomicAdd(sort.next + n, places[n]);
  }
  __syncthreads();
  for_block_terms(sort, [&](Term term) { sort.order[atomicAdd(places + term.node, 1)] = term.row; });
}

inline cudaError_t start_sorting(const NodeRows& sort, cudaStream_t stream) {
  if (const cudaError_t error = cudaMemsetAsync(
          sort.counts, 0, static_cast<std::size_t>(sort.nodes) * sizeof(std::int32_t), stream);
      error != cudaSuccess) {
    return error;
  }
  const auto blocks = static_cast<unsigned>((sort.terms + kSortRows - 1) / kSortRows);
  const std::size_t shared =
      sort.nodes > kSharedNodes ? 0 : static_cast<std::size_t>(sort.nodes) * sizeof(std::int32_t);
  if (blocks > 0) start_kernel(count_node_rows, blocks, kSortThreads, shared, stream, sort);
  start_kernel(start_node_rows, 1, 32, 0, stream, sort);
  if (blocks > 0) start_kernel(place_node_rows, blocks, kSortThreads, shared, stream, sort);
  return cudaGetLastError();
}

}  // namespace isofold::cuda
