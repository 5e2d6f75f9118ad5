// The kernel for short rows without weights: a lane a row. Pooling adjacent violators from left to right (the
// stack of 'Merge Hulls Without Copying Vertices', Section 3.1), with a block's sum kept where its values
// were. Sums are exact (lane_sums.cuh), or the row is left to short_rows.cuh.
#pragma once

#include <cstdint>

#include "cuda/lane_sums.cuh"
#include "cuda/plan.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

inline constexpr int kLaneRowWarps = 2;  // of a block
inline constexpr int kLongestLaneRow = class_size(1) * kTile;

// Shared memory of a row of up to `longest` elements: they, an odd number so that lanes meet different banks,
// and a byte for each: first the stack of block starts, then the flags of block starts.
__host__ __device__ constexpr int lane_row_stride(int longest) { return longest | 1; }
template <class V>
__host__ __device__ constexpr int lane_warp_bytes(int longest) {
  return 32 * (static_cast<int>(sizeof(V)) * lane_row_stride(longest) + (longest + 3) / 4 * 4);
}

// Pools the row's blocks: leaves their starts on the stack and returns how many they are, every block's sum
// kept. Widths are kept as doubles: to turn integers into them takes longer than to multiply.
template <class Sums>
__device__ int pool_row(const typename Sums::Row& row) {
  int blocks = 0;  // on the stack; `start`, `sum` and `width` are those of the block after them
  int start = 0;
  auto sum = Sums::single(row, 0);
  double width = 1;
  int below_start = 0;  // the last on the stack
  typename Sums::Sum below_sum{};
  double below_width = 0;
  int next = 1;
  for (;;) {
    if (blocks > 0 && !Sums::above(sum, width, below_sum, below_width)) {
      start = below_start;
      sum = sum + below_sum;
      width += below_width;
      --blocks;
      if (blocks > 0) {
        below_start = row.stack[blocks - 1];
        below_sum = Sums::kept(row, below_start, start - below_start);
        below_width = as_width(start - below_start);
      }
      continue;
    }
    row.stack[blocks++] = static_cast<std::uint8_t>(start);
    Sums::keep(row, start, next - start, sum);
    if (next == row.length) return blocks;
    below_start = start;
    below_sum = sum;
    below_width = width;
    start = next;
    sum = Sums::single(row, next);
    width = 1;
    ++next;
  }
}

// Replaces the values by the fit and the stack by flags; whether all could be rounded. A block's value is
// first put where it starts; then all are spread from the last element to the first: a start is never further
// left than its place on the stack.
template <class Sums>
__device__ bool spread_blocks(const typename Sums::Row& row, const Output& output, int blocks) {
  using V = std::remove_reference_t<decltype(row.values[0])>;
  const auto lower = static_cast<V>(output.lower);
  const auto upper = static_cast<V>(output.upper);
  bool decided = true;
  int end = row.length;
  for (int block = blocks - 1; block >= 0; --block) {
    const int start = row.stack[block];
    const int count = end - start;
    V mean;
    decided = Sums::mean(Sums::kept(row, start, count), count, output.to_float32 != 0, &mean) && decided;
    mean = row.sign * mean + V{0};
    row.values[start] = mean < lower ? lower : (mean > upper ? upper : mean);
    end = start;
  }
  int start = row.stack[--blocks];
  V shown = row.values[start];
  for (int k = row.length - 1; k >= 0; --k) {
    row.values[k] = shown;
    row.stack[k] = k == start ? 1 : 0;
    if (k == start && blocks > 0) {
      start = row.stack[--blocks];
      shown = row.values[start];
    }
  }
  return decided;
}

// Whether the row could be fitted by such sums.
template <class Sums>
__device__ bool fit_row(const typename Sums::Row& row, const Output& output) {
  return Sums::hold(row) && spread_blocks<Sums>(row, output, pool_row<Sums>(row));
}

// Rows of at most 128 elements, a lane each. `row_class` as in short_rows.cuh, `longest` of the class.
template <class E>
__global__ void __launch_bounds__(32 * kLaneRowWarps)
    fit_lane_rows(const Plan<E> plan, int row_class, int longest) {
  using V = typename E::Value;
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  unsigned char* own = memory + (threadIdx.x / 32) * lane_warp_bytes<V>(longest);
  const int stride = lane_row_stride(longest);
  const int bytes = (longest + 3) / 4 * 4;
  auto* values = reinterpret_cast<V*>(own);
  std::uint8_t* stacks = own + 32 * static_cast<int>(sizeof(V)) * stride;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kLaneRowWarps + threadIdx.x / 32) * 32;
  const bool ragged = plan.offsets != nullptr;
  const std::int64_t all = ragged ? static_cast<std::int64_t>(plan.counts[row_class]) : plan.rows;
  if (first >= all) return;
  const int rows = static_cast<int>(all - first < 32 ? all - first : 32);
  std::int64_t number = first + lane;
  std::int64_t begin = 0;
  int length = 0;
  if (lane < rows) {
    if (ragged) number = plan.class_rows[row_class][number];
    begin = ragged ? plan.offsets[number] : number * plan.row_length;
    length = static_cast<int>(ragged ? plan.offsets[number + 1] - begin : plan.row_length);
  }
  // Calls visit(place in values, in stacks, in the batch) for all elements of the warp's rows, neighbouring
  // lanes neighbouring elements.
  const auto for_each_element = [&](auto&& visit) {
    if (ragged) {
      for (int row = 0; row < rows; ++row) {
        const std::int64_t from = __shfl_sync(0xffffffffU, begin, row);
        const int count = __shfl_sync(0xffffffffU, length, row);
        for (int k = lane; k < count; k += 32) visit(row * stride + k, row * bytes + k, from + k);
      }
    } else {
      const int count = rows * longest;
      const float inverse = 1.0F / static_cast<float>(longest);
      const std::int64_t from = first * longest;
#pragma unroll 4
      for (int e = lane; e < count; e += 32) {
        // e / longest, exact for such small numbers: the product is off by less than half of 1 / longest.
        const int row = static_cast<int>((static_cast<float>(e) + 0.5F) * inverse);
        visit(e + row * (stride - longest), e + row * (bytes - longest), from + e);
      }
    }
  };
  const V* input = plan.elements.values;
  for_each_element([&](int place, int, std::int64_t at) {
    __pipeline_memcpy_async(values + place, input + at, sizeof(V));
  });
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  const LaneRow<V> row{values + lane * stride, stacks + lane * bytes, length,
                       static_cast<V>(plan.elements.sign)};
  if (lane < rows) {
    bool fitted = false;
    if constexpr (kPlainTiles<E>) {
      fitted = PlainLaneSums::hold(row);
      if (fitted) spread_blocks<PlainLaneSums>(row, plan.output, pool_row<PlainLaneSums>(row));
    }
    if (!fitted && !fit_row<PairLaneSums<V>>(row, plan.output)) {
      plan.dense_rows[row_class][atomicAdd(plan.dense_counts + row_class, 1ULL)] = number;
    }
  }
  __syncwarp();
  // What a row left to others holds is overwritten by them.
  with_fit(plan.output, [&](auto* fit) {
    for_each_element([&](int place, int, std::int64_t at) {
      fit[at] = static_cast<std::remove_pointer_t<decltype(fit)>>(values[place]);
    });
  });
  if (plan.output.block_starts != nullptr) {
    for_each_element([&](int, int place, std::int64_t at) { plan.output.block_starts[at] = stacks[place]; });
  }
}

}  // namespace isofold::cuda
