// Histograms of gradients over binned features, for growing trees: sums without rounding.
//
// Gradients and hessians are rounded once, to a grid: q = g / 2^gradient_exponent to nearest, ties to even,
// where the exponent makes 2^28 <= max |q| <= 2^29 for the largest gradient of the problem; hessians likewise
// with 2^23 <= max q <= 2^24, but one that is not zero never becomes zero. Everything after that is integer
// addition. So a histogram does not depend on the order of the rows, on threads, blocks or the device, and
// neither on what else is in the batch.
//
// On a device these calls only enqueue work. Scratch is Executor::scratch, if it is large enough (the error
// says how much is), or allocated in stream order.
#pragma once

#include <cstdint>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/status.hpp"

namespace isofold {

// What a unit of the sums is worth: a gradient sum s stands for s * 2^gradient_exponent.
struct GradientGrid {
  std::int32_t gradient_exponent = 0;
  std::int32_t hessian_exponent = 0;
  // Never set by a call that returned ok on the host. On a device, what the host could not see: 1 where a
  // gradient or hessian is not finite, a hessian negative, or one of them beyond a given grid. Such rows are
  // quantised to zero, and best_splits finds no split on such a grid.
  std::int32_t fault = 0;
};

struct alignas(8) QuantizedGradient {
  std::int32_t gradient;  // within [-2^29, 2^29]
  std::int32_t hessian;   // within [0, 2^24]
};

struct GradientProblem {
  ConstArray gradients;  // float32 or float64
  ConstArray hessians;   // float32 or float64, not negative; absent: all ones
  std::int64_t rows = 0;
};

// The grid of a problem, from its largest magnitudes, and each row's place on it. With `given`, the rows are
// put on that grid instead, as long as it holds them. The grid of zeros only is that of ones.
// Backend::cuda: `out`, `grid` and `given` are device memory; `grid` is asked for.
[[nodiscard]] Status quantize_gradients(const GradientProblem& problem, const GradientGrid* given,
                                        QuantizedGradient* out, GradientGrid* grid,
                                        const Executor& executor = {});

enum class BinType : std::uint8_t { uint8, uint16 };

// The bin of each row in each feature. A missing value has a bin like any other.
struct BinMatrix {
  const void* data = nullptr;
  BinType type = BinType::uint8;
  std::int64_t rows = 0;
  std::int32_t features = 0;
  std::int64_t row_step = 0;      // elements from a row to the next: features for a row-major matrix
  std::int64_t feature_step = 0;  // elements from a feature to the next: rows for a column-major one

  static BinMatrix row_major(const void* data, BinType type, std::int64_t rows, std::int32_t features) {
    return {data, type, rows, features, features, 1};
  }
  static BinMatrix column_major(const void* data, BinType type, std::int64_t rows, std::int32_t features) {
    return {data, type, rows, features, 1, rows};
  }
};

// Sums are at most 2^60 in magnitude: the terms are fewer than 2^31.
inline constexpr std::int64_t kMostHistogramRows = (std::int64_t{1} << 31) - 1;

struct HistogramProblem {
  BinMatrix bins;
  const QuantizedGradient* gradients = nullptr;  // bins.rows of them
  std::int32_t bin_count = 0;                    // every bin is less
  // The node of each row of the matrix, within [0, nodes), or -1 for a row that is in none. nullptr: all in
  // node 0.
  const std::int32_t* node_ids = nullptr;
  std::int32_t nodes = 1;
  // Only these rows, in any order; one that comes twice counts twice. nullptr: all rows.
  const std::int64_t* row_subset = nullptr;
  std::int64_t subset_rows = 0;
};

// Caller-owned, each of nodes x features x bin_count entries, bins innermost. For Backend::cuda in device
// memory.
struct HistogramArrays {
  std::int64_t* gradients = nullptr;
  std::int64_t* hessians = nullptr;
  std::int32_t* counts = nullptr;
};

// On a device, a bin, node or row that is out of range is what the host cannot see: it is left out of the
// sums, and *`fault` (device memory, or nullptr) is set to 1 and otherwise to 0. The host reports it instead
// and leaves `fault` alone.
[[nodiscard]] Status histogram(const HistogramProblem& problem, const HistogramArrays& out,
                               const Executor& executor = {}, std::int32_t* fault = nullptr);

// out = parent - child, entry by entry; out may be either of them. With one grid behind both, that is the
// histogram of the parent's other rows. On the host, a child with a bin of more rows than its parent is an
// error.
[[nodiscard]] Status subtract_histogram(const HistogramArrays& parent, const HistogramArrays& child,
                                        std::int64_t entries, const HistogramArrays& out,
                                        const Executor& executor = {});

}  // namespace isofold
