// The kernel for short rows of floats: a lane a row. Pooling adjacent violators from left to right (the stack
// of 'Merge Hulls Without Copying Vertices', Section 3.1), with a block's sum kept where its values were.
// Sums are exact as doubles, or the row is left to short_rows.cuh.
#pragma once

#include <cstdint>

#include "cuda/plan.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

inline constexpr int kLaneRowWarps = 2;  // of a block

// Shared memory of a row of up to `longest` elements: they, an odd number so that lanes meet different banks,
// and a byte for each: first the stack of block starts, then the flags of block starts.
__host__ __device__ constexpr int lane_row_stride(int longest) { return longest | 1; }
__host__ __device__ constexpr int lane_warp_bytes(int longest) {
  return 32 * (4 * lane_row_stride(longest) + (longest + 3) / 4 * 4);
}

struct LaneRow {
  float* values;
  std::uint8_t* stack;
  int length;
  float sign;
};

// The sum of a block, kept in the places of its first two values.
__device__ inline double kept_sum(const LaneRow& row, int start, int count) {
  const float first = row.values[start];
  if (count == 1) return static_cast<double>(row.sign * first);
  return __hiloint2double(__float_as_int(row.values[start + 1]), __float_as_int(first));
}
__device__ inline void keep_sum(const LaneRow& row, int start, int count, double sum) {
  if (count == 1) return;
  row.values[start] = __int_as_float(__double2loint(sum));
  row.values[start + 1] = __int_as_float(__double2hiint(sum));
}

// Whether all sums of the row's values are exact as doubles; false where one is not finite.
__device__ inline bool exact_row(const LaneRow& row) {
  FloatUnit unit;
  float magnitude = 0;
#pragma unroll 4
  for (int k = 0; k < row.length; ++k) {
    const float value = row.values[k];
    unit.see(value);
    magnitude += fabsf(value);
  }
  return magnitude < 0x1p120F && exact_as_double(static_cast<double>(magnitude) * (1 + 0x1p-16), unit.unit());
}

// A width as a double, in one addition: converting takes eight times as long.
__device__ inline double as_width(int count) { return __hiloint2double(0x43300000, count) - 0x1p52; }

// Pools the row's blocks: leaves their starts on the stack and returns how many they are, every block's sum
// kept. Widths are kept as doubles: to turn integers into them takes longer than to multiply.
__device__ inline int pool_row(const LaneRow& row) {
  int blocks = 0;  // on the stack; `start`, `sum` and `width` are those of the block after them
  int start = 0;
  double sum = static_cast<double>(row.sign * row.values[0]);
  double width = 1;
  int below_start = 0;  // the last on the stack
  double below_sum = 0;
  double below_width = 0;
  int next = 1;
  for (;;) {
    if (blocks > 0 && !product_above(sum, below_width, below_sum, width)) {
      start = below_start;
      sum += below_sum;
      width += below_width;
      --blocks;
      if (blocks > 0) {
        below_start = row.stack[blocks - 1];
        below_sum = kept_sum(row, below_start, start - below_start);
        below_width = as_width(start - below_start);
      }
      continue;
    }
    row.stack[blocks++] = static_cast<std::uint8_t>(start);
    keep_sum(row, start, next - start, sum);
    if (next == row.length) return blocks;
    below_start = start;
    below_sum = sum;
    below_width = width;
    start = next;
    sum = static_cast<double>(row.sign * row.values[next]);
    width = 1;
    ++next;
  }
}

// sum / count in float32, both exact. Powers of two divide exactly. Else the product with a reciprocal is off
// by less than 2^-43 of itself, 2^10 units of a double, and rounds as the quotient does where its last 29
// bits are further from a midpoint of two floats.
__device__ inline float lane_mean(double sum, int count) {
  if ((count & (count - 1)) == 0) {
    return static_cast<float>(sum * __hiloint2double((1024 - __ffs(count)) << 20, 0));
  }
  const double width = as_width(count);
  const auto near = static_cast<double>(__fdividef(1.0F, static_cast<float>(count)));  // off by 2^-22
  const double quotient = sum * (near * (2 - width * near));
  const int tail = (__double2loint(quotient) & 0x1fffffff) - 0x10000000;
  const double size = fabs(quotient);
  const bool usual = (size > 0x1p-125 && size < 0x1p127) || sum == 0;
  const bool decided = usual && (tail > 0x800 || tail < -0x800);
  return decided || !kCertified ? static_cast<float>(quotient)
                                : static_cast<float>(exact_doubles_mean(sum, width, true));
}

// Replaces the values by the fit and the stack by flags. A block's value is first put where it starts; then
// all are spread from the last element to the first: a start is never further left than its place on the
// stack.
__device__ inline void spread_blocks(const LaneRow& row, const Output& output, int blocks) {
  const auto lower = static_cast<float>(output.lower);
  const auto upper = static_cast<float>(output.upper);
  int end = row.length;
  for (int block = blocks - 1; block >= 0; --block) {
    const int start = row.stack[block];
    const int count = end - start;
    const double sum = kept_sum(row, start, count);
    const float mean = row.sign * lane_mean(sum, count) + 0.0F;
    row.values[start] = mean < lower ? lower : (mean > upper ? upper : mean);
    end = start;
  }
  int start = row.stack[--blocks];
  float shown = row.values[start];
  for (int k = row.length - 1; k >= 0; --k) {
    row.values[k] = shown;
    row.stack[k] = k == start ? 1 : 0;
    if (k == start && blocks > 0) {
      start = row.stack[--blocks];
      shown = row.values[start];
    }
  }
}

// Rows of at most 128 floats, a lane each. `row_class` as in short_rows.cuh, `longest` of the class.
template <class E>
__global__ void __launch_bounds__(32 * kLaneRowWarps)
    fit_lane_rows(const Plan<E> plan, int row_class, int longest) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  unsigned char* own = memory + (threadIdx.x / 32) * lane_warp_bytes(longest);
  const int stride = lane_row_stride(longest);
  const int bytes = (longest + 3) / 4 * 4;
  auto* values = reinterpret_cast<float*>(own);
  std::uint8_t* stacks = own + 32 * 4 * stride;
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
  const float* input = plan.elements.values;
  for_each_element([&](int place, int, std::int64_t at) {
    __pipeline_memcpy_async(values + place, input + at, sizeof(float));
  });
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();
  const LaneRow row{values + lane * stride, stacks + lane * bytes, length,
                    static_cast<float>(plan.elements.sign)};
  bool fitted = true;
  if (lane < rows) {
    fitted = exact_row(row);
    if (fitted) {
      spread_blocks(row, plan.output, pool_row(row));
    } else {
      plan.dense_rows[row_class][atomicAdd(plan.dense_counts + row_class, 1ULL)] = number;
    }
  }
  __syncwarp();
  // What a row left to others holds is overwritten by them.
  if (plan.output.fit != nullptr) {
    auto* fit = static_cast<float*>(plan.output.fit);
    for_each_element([&](int place, int, std::int64_t at) { fit[at] = values[place]; });
  }
  if (plan.output.block_starts != nullptr) {
    for_each_element([&](int, int place, std::int64_t at) { plan.output.block_starts[at] = stacks[place]; });
  }
}

}  // namespace isofold::cuda
