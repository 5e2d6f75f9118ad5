// Histograms on the device. A warp takes a row, a lane a feature, and adds to its own column of the block's
// shared memory; blocks add what they have to the output. Integers throughout, so in any order.
#include "cuda/histogram_block.cuh"

#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "cuda/device_call.hpp"
#include "cuda/node_rows.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/team.cuh"
#include "cuda/trees.hpp"

namespace isofold::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / 32;
constexpr int kUnroll = 8;  // rows that a lane has under way
constexpr std::int64_t kLeastChunkRows = 4096;
constexpr int kWideThreads = 256;

// How a block's columns are shared out.
struct Columns {
  std::int32_t features = 0;  // of a group: a block does one group
  std::int32_t groups = 0;
  std::int32_t rows_at_once = 1;  // of a warp, each with columns of its own
  std::int32_t stride = 0;        // columns a bin
};

struct HistogramPlan {
  const void* bins;
  std::int64_t row_step;
  std::int64_t feature_step;
  std::int32_t features;
  std::int32_t bin_count;
  std::int32_t nodes;
  std::int64_t rows;
  const QuantizedGradient* gradients;
  const std::int32_t* order;         // rows by node; nullptr: all rows in order, in one node
  const std::int64_t* starts;        // nodes + 1
  const std::int64_t* chunk_starts;  // nodes + 1
  std::int64_t chunk_rows;
  Columns columns;
  HistogramArrays out;
  std::int32_t* fault;
  std::int32_t words_of_rows;  // eight rows' bins of a feature lie in an aligned word of eight bytes
};

struct Chunk {
  std::int32_t node;
  std::int64_t begin;
  std::int64_t end;
};

__device__ Chunk find_chunk(const HistogramPlan& plan, std::int64_t chunk) {
  if (plan.order == nullptr) {
    const std::int64_t begin = chunk * plan.chunk_rows;
    return {0, begin, min(begin + plan.chunk_rows, plan.rows)};
  }
  if (chunk >= plan.chunk_starts[plan.nodes]) return {-1, 0, 0};
  std::int32_t low = 0;
  std::int32_t high = plan.nodes;
  while (high - low > 1) {
    const std::int32_t middle = low + (high - low) / 2;
    (plan.chunk_starts[middle] <= chunk ? low : high) = middle;
  }
  const std::int64_t begin = plan.starts[low] + (chunk - plan.chunk_starts[low]) * plan.chunk_rows;
  return {low, begin, min(begin + plan.chunk_rows, plan.starts[low + 1])};
}

__device__ void add_sums(const HistogramPlan& plan, std::int64_t at, const BlockHistogram::Sums& sums) {
  atomicAdd(reinterpret_cast<unsigned long long*>(plan.out.gradients + at),
            static_cast<unsigned long long>(sums.gradient));
  atomicAdd(reinterpret_cast<unsigned long long*>(plan.out.hessians + at),
            static_cast<unsigned long long>(sums.hessian));
  atomicAdd(plan.out.counts + at, sums.count);
}

// A lane's rows: those of its share of the warp, kUnroll at a time so that their loads overlap.
template <class Bin, bool kListed>
__device__ void add_rows(const HistogramPlan& plan, const BlockHistogram& sums, const Chunk& chunk, int lane,
                         std::int64_t column, int cell_of_lane) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int at_once = plan.columns.rows_at_once;
  const int of_warp = lane / plan.columns.features;
  const auto* bins = static_cast<const Bin*>(plan.bins) + column * plan.feature_step;
  const std::int64_t step = std::int64_t{kWarps} * at_once * kUnroll;
  bool fault = false;
  for (std::int64_t first = chunk.begin + (std::int64_t{warp} * at_once + of_warp) * kUnroll;
       first < chunk.end; first += step) {
    std::int32_t bin[kUnroll];
    QuantizedGradient q[kUnroll];
    const bool whole = first + kUnroll <= chunk.end;
    if (!kListed && sizeof(Bin) == 1 && plan.words_of_rows != 0 && whole) {
      const auto word = *reinterpret_cast<const unsigned long long*>(bins + first);
      for (int k = 0; k < kUnroll; ++k) {
        bin[k] = static_cast<std::int32_t>(word >> (8 * k) & 0xff);
        q[k] = plan.gradients[first + k];
      }
    } else {
      for (int k = 0; k < kUnroll; ++k) {
        const std::int64_t i = first + k;
        if (!whole && i >= chunk.end) {
          bin[k] = -1;
          q[k] = {0, 0};
          continue;
        }
        const std::int64_t row = kListed ? plan.order[i] : i;
        bin[k] = bins[row * plan.row_step];
        q[k] = plan.gradients[row];
      }
    }
    for (int k = 0; k < kUnroll; ++k) {
      if (bin[k] < 0) continue;
      if (bin[k] >= plan.bin_count) {
        fault = true;
        continue;
      }
      sums.add(bin[k] * plan.columns.stride + cell_of_lane, q[k]);
    }
  }
  if (fault && plan.fault != nullptr) *plan.fault = 1;  // whoever stores it stores the same
}

template <class Bin, bool kListed>
__global__ void __launch_bounds__(kThreads, 1) build_histograms(const HistogramPlan plan) {
  begin_kernel();
  const Columns& columns = plan.columns;
  const std::int32_t group = static_cast<std::int32_t>(blockIdx.x) % columns.groups;
  const Chunk chunk = find_chunk(plan, blockIdx.x / columns.groups);
  if (chunk.node < 0) return;
  const int cells = plan.bin_count * columns.stride;
  const BlockHistogram sums(dynamic_shared(), cells);
  for (int i = static_cast<int>(threadIdx.x); i < cells * (kCellBytes / 4); i += kThreads) {
    sums.gradients[i] = 0;  // and the words behind them
  }
  __syncthreads();
  const std::int32_t first_feature = group * columns.features;
  const std::int32_t features = min(columns.features, plan.features - first_feature);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int feature = lane % columns.features;
  if (lane / columns.features < columns.rows_at_once && feature < features) {
    const int cell = columns.stride >= columns.features * columns.rows_at_once ? lane : feature;
    add_rows<Bin, kListed>(plan, sums, chunk, lane, first_feature + feature, cell);
  }
  __syncthreads();
  const int copies = columns.stride >= columns.features * columns.rows_at_once ? columns.rows_at_once : 1;
  for (int i = static_cast<int>(threadIdx.x); i < features * plan.bin_count; i += kThreads) {
    const int of = i / plan.bin_count;
    const int bin = i % plan.bin_count;
    BlockHistogram::Sums total{0, 0, 0};
    for (int copy = 0; copy < copies; ++copy) {
      const BlockHistogram::Sums part = sums.sums(bin * columns.stride + copy * columns.features + of);
      total = {total.gradient + part.gradient, total.hessian + part.hessian, total.count + part.count};
    }
    if (total.count == 0) continue;
    const std::int64_t row = std::int64_t{chunk.node} * plan.features + first_feature + of;
    add_sums(plan, row * plan.bin_count + bin, total);
  }
}

// Bins that no shared memory holds: one thread a row and feature, straight to the output.
template <class Bin, bool kListed>
__global__ void __launch_bounds__(kWideThreads) add_to_wide_histograms(const HistogramPlan plan) {
  begin_kernel();
  const std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * kWideThreads + threadIdx.x;
  const std::int64_t i = number / plan.features;
  const std::int64_t feature = number - i * plan.features;
  const std::int64_t terms = kListed ? plan.starts[plan.nodes] : plan.rows;
  if (i >= terms) return;
  std::int32_t node = 0;
  if (kListed) {
    std::int32_t high = plan.nodes;
    while (high - node > 1) {
      const std::int32_t middle = node + (high - node) / 2;
      (plan.starts[middle] <= i ? node : high) = middle;
    }
  }
  const std::int64_t row = kListed ? plan.order[i] : i;
  const std::int32_t bin =
      static_cast<const Bin*>(plan.bins)[row * plan.row_step + feature * plan.feature_step];
  if (bin >= plan.bin_count) {
    if (plan.fault != nullptr) *plan.fault = 1;
    return;
  }
  const QuantizedGradient q = plan.gradients[row];
  add_sums(plan, (node * std::int64_t{plan.features} + feature) * plan.bin_count + bin,
           {q.gradient, q.hessian, 1});
}

__global__ void __launch_bounds__(kWideThreads)
    subtract_entries(const HistogramArrays parent, const HistogramArrays child, const std::int64_t entries,
                     const HistogramArrays out) {
  begin_kernel();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWideThreads + threadIdx.x;
  if (i >= entries) return;
  out.gradients[i] = parent.gradients[i] - child.gradients[i];
  out.hessians[i] = parent.hessians[i] - child.hessians[i];
  out.counts[i] = parent.counts[i] - child.counts[i];
}

// Features of a group and rows at once, as far as `shared` bytes hold their columns. No features: not one.
Columns share_out(std::int32_t features, std::int32_t bin_count, std::int64_t shared) {
  const auto most =
      static_cast<std::int32_t>(std::min<std::int64_t>(32, shared / (kCellBytes * std::int64_t{bin_count})));
  Columns columns;
  if (most == 0) return columns;
  columns.groups = (features + most - 1) / most;
  columns.features = (features + columns.groups - 1) / columns.groups;
  columns.rows_at_once = 32 / columns.features;
  const std::int32_t wanted = columns.features * columns.rows_at_once;
  // 32 columns even if some of them are idle: then a lane's bank is its own.
  columns.stride = most == 32 ? 32 : (wanted <= most ? wanted : columns.features);
  return columns;
}

struct Sizes {
  Columns columns;
  bool listed;
  std::int64_t terms;
  std::int64_t chunk_rows;
  std::int64_t chunks;  // at most
};

Sizes sizes_of(const HistogramProblem& problem, std::int64_t shared, int multiprocessors) {
  Sizes sizes{};
  sizes.columns = share_out(problem.bins.features, problem.bin_count, shared);
  sizes.listed = problem.node_ids != nullptr || problem.row_subset != nullptr || problem.nodes > 1;
  sizes.terms = problem.row_subset != nullptr ? problem.subset_rows : problem.bins.rows;
  const std::int64_t blocks = std::max(1, multiprocessors / std::max(1, sizes.columns.groups));
  const std::int64_t share = (sizes.terms + blocks - 1) / blocks;
  // Equal shares of as many rounds as the counts allow; whole words of eight rows.
  const std::int64_t rounds = (share + kMostBlockRows - 1) / kMostBlockRows;
  const std::int64_t even = rounds == 0 ? 0 : (share + rounds - 1) / rounds;
  sizes.chunk_rows = std::min(kMostBlockRows, std::max(kLeastChunkRows, (even + 7) / 8 * 8));
  sizes.chunks = (sizes.terms + sizes.chunk_rows - 1) / sizes.chunk_rows + (sizes.listed ? problem.nodes : 0);
  return sizes;
}

NodeRows place_scratch(const HistogramProblem& problem, const Sizes& sizes, void* memory,
                       std::int64_t* used) {
  Carver carver(memory);
  NodeRows sort{};
  sort.node_ids = problem.node_ids;
  sort.subset = problem.row_subset;
  sort.terms = sizes.terms;
  sort.rows = problem.bins.rows;
  sort.nodes = problem.nodes;
  sort.chunk_rows = sizes.chunk_rows;
  if (sizes.listed) {
    sort.counts = carver.take<std::int32_t>(problem.nodes);
    sort.next = carver.take<std::int32_t>(problem.nodes);
    sort.starts = carver.take<std::int64_t>(std::int64_t{problem.nodes} + 1);
    sort.chunk_starts = carver.take<std::int64_t>(std::int64_t{problem.nodes} + 1);
    sort.order = carver.take<std::int32_t>(sizes.terms);
  }
  *used = carver.used();
  return sort;
}

template <class Bin, bool kListed>
cudaError_t launch(const HistogramPlan& plan, const Sizes& sizes, cudaStream_t stream) {
  if (sizes.columns.features == 0) {
    const std::int64_t items = sizes.terms * plan.features;
    const auto blocks = static_cast<unsigned>((items + kWideThreads - 1) / kWideThreads);
    start_kernel(add_to_wide_histograms<Bin, kListed>, blocks, kWideThreads, 0, stream, plan);
    return cudaGetLastError();
  }
  const int shared = plan.bin_count * sizes.columns.stride * kCellBytes;
  const auto kernel = build_histograms<Bin, kListed>;
  if (const cudaError_t error =
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
      error != cudaSuccess) {
    return error;
  }
  start_kernel(kernel, static_cast<unsigned>(sizes.chunks * sizes.columns.groups), kThreads,
               static_cast<std::size_t>(shared), stream, plan);
  return cudaGetLastError();
}

cudaError_t clear(const HistogramArrays& out, std::int64_t entries, std::int32_t* fault,
                  cudaStream_t stream) {
  const auto size = static_cast<std::size_t>(entries);
  cudaError_t error = cudaSuccess;
  if (size > 0) error = cudaMemsetAsync(out.gradients, 0, size * sizeof(std::int64_t), stream);
  if (size > 0 && error == cudaSuccess) {
    error = cudaMemsetAsync(out.hessians, 0, size * sizeof(std::int64_t), stream);
  }
  if (size > 0 && error == cudaSuccess) {
    error = cudaMemsetAsync(out.counts, 0, size * sizeof(std::int32_t), stream);
  }
  if (fault != nullptr && error == cudaSuccess) error = cudaMemsetAsync(fault, 0, sizeof(*fault), stream);
  return error;
}

bool words_of_rows(const BinMatrix& bins) {
  return bins.type == BinType::uint8 && bins.row_step == 1 && bins.feature_step % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(bins.data) % 8 == 0;
}

}  // namespace

Status histogram(const HistogramProblem& problem, const HistogramArrays& out, const Executor& executor,
                 std::int32_t* fault) {
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  int device = 0;
  int shared = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return failed(error, "CUDA device");
  const std::int64_t entries = std::int64_t{problem.nodes} * problem.bins.features * problem.bin_count;
  error = clear(out, entries, fault, stream);
  if (error != cudaSuccess) return failed(error, "histogram on the device");
  if (entries == 0) return {};
  const Sizes sizes = sizes_of(problem, shared, multiprocessors);
  if (sizes.terms == 0) return {};
  const std::int64_t most_blocks = std::int64_t{1} << 31;
  if (sizes.terms * problem.bins.features / kWideThreads + 1 >= most_blocks ||
      sizes.chunks * std::max(1, sizes.columns.groups) >= most_blocks) {
    return {StatusCode::unsupported, "bins: too many rows times features for one call on the CUDA executor",
            -1, -1};
  }
  std::int64_t bytes = 0;
  static_cast<void>(place_scratch(problem, sizes, nullptr, &bytes));
  return with_scratch(executor, bytes, [&](void* scratch) -> Status {
    NodeRows sort = place_scratch(problem, sizes, scratch, &bytes);
    sort.fault = fault;
    cudaError_t failure = sizes.listed ? start_sorting(sort, stream) : cudaSuccess;
    if (failure != cudaSuccess) return failed(failure, "rows by node on the device");
    const HistogramPlan plan{problem.bins.data,
                             problem.bins.row_step,
                             problem.bins.feature_step,
                             problem.bins.features,
                             problem.bin_count,
                             problem.nodes,
                             problem.bins.rows,
                             problem.gradients,
                             sort.order,
                             sort.starts,
                             sort.chunk_starts,
                             sizes.chunk_rows,
                             sizes.columns,
                             out,
                             fault,
                             static_cast<std::int32_t>(words_of_rows(problem.bins))};
    if (problem.bins.type == BinType::uint8) {
      failure = sizes.listed ? launch<std::uint8_t, true>(plan, sizes, stream)
                             : launch<std::uint8_t, false>(plan, sizes, stream);
    } else {
      failure = sizes.listed ? launch<std::uint16_t, true>(plan, sizes, stream)
                             : launch<std::uint16_t, false>(plan, sizes, stream);
    }
    return failure == cudaSuccess ? Status{} : failed(failure, "histogram on the device");
  });
}

Status subtract_histogram(const HistogramArrays& parent, const HistogramArrays& child, std::int64_t entries,
                          const HistogramArrays& out, const Executor& executor) {
  if (entries == 0) return {};
  const auto blocks = static_cast<unsigned>((entries + kWideThreads - 1) / kWideThreads);
  start_kernel(subtract_entries, blocks, kWideThreads, 0, static_cast<cudaStream_t>(executor.stream), parent,
               child, entries, out);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? Status{} : failed(error, "subtraction on the device");
}

}  // namespace isofold::cuda
