// The kernel for rows of one chunk that are worth a warp: scanned, fitted and written where few points can be
// vertices, and left to short_rows.cuh where many can.
#pragma once

#include <cstdint>

#include "cuda/filter_chunks.cuh"
#include "cuda/plan.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

// The value of the edge between two listed points, before sign and bounds.
template <class E, int Tiles>
__device__ double sparse_edge_value(const SparseChunk<E, Tiles>& chunk, const Output& output, int from,
                                    int to) {
  const auto& points = chunk.scratch.points;
  const int a = points.position[from];
  const int b = points.position[to];
  if (kPlainTiles<E> && chunk.exact) {
    return exact_doubles_mean(points.total_high[to] - points.total_high[from], b - a, output.to_float32 != 0);
  }
  const Point start = chunk.point(from);
  const Point stop = chunk.point(to);
  CertifiedSum weight{{static_cast<double>(b - a), 0.0}, 0.0};
  if constexpr (E::kWeighted) weight = {stop.weight.value - start.weight.value, 2 * chunk.weight_error};
  return certified_mean(chunk.row, chunk.origin + a, chunk.origin + b,
                        {stop.total.value - start.total.value, 2 * chunk.error}, weight, output.format);
}

// Writes a row's fit from its first `count` points in order and its end. `base`: its first element in the
// batch.
template <class E, int Tiles>
__device__ void write_sparse_row(const SparseChunk<E, Tiles>& chunk, const Output& output, std::int64_t base,
                                 int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  auto& scratch = chunk.scratch;
  auto& points = scratch.points;
  double* values = scratch.total_high;  // of the edges: nobody asks for tiles any more
  auto* mask = reinterpret_cast<std::uint32_t*>(scratch.depth);
  auto* before = scratch.alive;  // edges that start before a tile
  for (int t = lane; t < chunk.tiles(); t += 32) mask[t] = 0;
  __syncwarp();
  for (int i = lane; i < count; i += 32) {
    const int from = points.order[i];
    values[i] =
        clipped(output, chunk.row.sign * sparse_edge_value(chunk, output, from, points.order[i + 1]) + 0.0);
    atomicOr(mask + points.position[from] / kTile, 1U << (points.position[from] % kTile));
  }
  __syncwarp();
  const Team<32> team{nullptr};
  int edges = 0;
  for (int first = 0; first < chunk.tiles(); first += 32) {
    const auto places = team.scan(first + lane < chunk.tiles() ? __popc(mask[first + lane]) : 0);
    if (first + lane < chunk.tiles()) before[first + lane] = static_cast<std::uint8_t>(edges + places.before);
    edges += places.all;
  }
  __syncwarp();
  write_edges<32>(EdgeLookup<std::uint8_t>{mask, before, values - 1}, output, base, chunk.length);
}

// Writes a row whose values never fall: it is its own fit.
template <class E>
__device__ void write_sorted_row(const E& row, const Output& output, std::int64_t base, int length) {
  const auto write_fit = [&](auto* fit) {
    using T = std::remove_pointer_t<decltype(fit)>;
    write_fours<32>(fit + base, length, [&](int i, T(&four)[4]) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const double value = round_to(row.value(min(i + j, length - 1)), output.format) + 0.0;
        four[j] = static_cast<T>(clipped(output, row.sign * value + 0.0));
      }
    });
  };
  with_fit(output, write_fit);
  if (output.block_starts == nullptr) return;
  write_fours<32>(output.block_starts + base, length, [&](int i, std::uint8_t(&four)[4]) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int at = min(i + j, length - 1);
      four[j] = at == 0 || row.value(at - 1) < row.value(at) ? 1 : 0;
    }
  });
}

// The stage lies where the points will.
template <class E, int Tiles>
struct RowScratch {
  SparseScratch<E, Tiles> sparse;
  static constexpr std::size_t kMore = sizeof(Stage<E>) > sizeof(SparsePoints<E>)
                                           ? sizeof(Stage<E>) - sizeof(SparsePoints<E>)
                                           : 16;
  unsigned char more[kMore];

  __device__ Stage<E>& stage() { return *reinterpret_cast<Stage<E>*>(&sparse.points); }
};
template <class E, int Tiles>
struct FilteredRowShared {
  RowScratch<E, Tiles> warps[kFilterWarps];
};

// A warp a row; `row_class` as in short_rows.cuh.
template <class E, int Tiles>
__global__ void __launch_bounds__(32 * kFilterWarps, kFilterResident<FilteredRowShared<E, Tiles>>)
    filter_rows(const Plan<E> plan, int row_class) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  auto& scratch = reinterpret_cast<FilteredRowShared<E, Tiles>*>(memory)->warps[threadIdx.x / 32];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kFilterWarps + threadIdx.x / 32;
  std::int64_t begin;
  int length;
  if (plan.offsets == nullptr) {
    if (number >= plan.rows) return;
    begin = number * plan.row_length;
    length = static_cast<int>(plan.row_length);
  } else {
    if (number >= static_cast<std::int64_t>(plan.counts[row_class])) return;
    number = plan.class_rows[row_class][number];
    begin = plan.offsets[number];
    length = static_cast<int>(plan.offsets[number + 1] - begin);
  }
  SparseChunk<E, Tiles> chunk{scratch.sparse, plan.elements.from(begin), 0, length, {}};
  auto& stage = scratch.stage();
  stage_elements(stage, chunk.row, 0, length);
#pragma unroll 1
  for (int first = 0; first < length; first += kGroup) {
    ScanFacts facts;
    const TileScan<E> tile = scan_group<E>(stage, min(length - first, kGroup), chunk.row.sign, facts, [&] {
      stage_elements(stage, chunk.row, first + kGroup, length - first - kGroup);
    });
    const int at = first / kTile + lane;
    if (at < chunk.tiles()) scratch.sparse.set_tile(at, tile);
    chunk.facts = chunk.facts + facts;
  }
  __pipeline_wait_prior(0);
  __syncwarp();
  const int groups = (length + kGroup - 1) / kGroup;
  if (chunk.facts.allowed && chunk.facts.sorted == groups && groups_join(chunk)) {
    write_sorted_row(chunk.row, plan.output, begin, length);
    return;
  }
  const int count = worth_filtering<E>(chunk.facts, length) ? find_sparse_hull(chunk) : 0;
  if (count > 0) {
    write_sparse_row(chunk, plan.output, begin, count - 1);
  } else if (lane == 0) {
    plan.dense_rows[row_class][atomicAdd(plan.dense_counts + row_class, 1ULL)] = number;
  }
}

}  // namespace isofold::cuda
