// Linear maps of concatenated vectors for conjugate_gradient: y = A x, where A is block-diagonal with one
// block for each system. An element of y is the sum over its own row, in the row's order, in float64, rounded
// once to the vectors' type: nothing else of the batch has a part in it, and every executor gives the same
// bits.
#pragma once

#include <cstdint>
#include <functional>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"

namespace isofold {

// Writes A x to y. Both have the solver's type and number of elements; y is none of its inputs. With
// Backend::cuda they are in device memory, and a map only enqueues work on executor.stream.
using LinearMap = std::function<Status(const void* x, void* y, const Executor& executor)>;

// Compressed rows. Columns count through the concatenated vector; a row with a column outside of `columns`
// elements is NaN.
struct CompressedRows {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  const std::int64_t* offsets = nullptr;  // rows + 1
  const std::int64_t* indices = nullptr;  // offsets[rows]
  ConstArray values;                      // as many, float32 or float64
};

// 2 width + 1 diagonals: row i is the sum over d = -width .. width of values[(d + width) rows + i] x[i + d],
// for those i + d that lie in i's system.
struct Banded {
  Rows systems;
  std::int64_t width = 0;
  ConstArray values;
};

// Blocks of `size` elements one after the other: row i is the sum over j < size of values[i size + j] x[first
// of i's block + j]. Size 1 is a diagonal.
struct BlockDiagonal {
  std::int64_t rows = 0;  // a multiple of size
  std::int64_t size = 1;
  ConstArray values;
};

// The maps keep the pointers, not what they point to. `type` is that of x and y.
[[nodiscard]] LinearMap linear_map(const CompressedRows& matrix, DataType type);
[[nodiscard]] LinearMap linear_map(const Banded& matrix, DataType type);
[[nodiscard]] LinearMap linear_map(const BlockDiagonal& matrix, DataType type);

// J^T (J x) + damping x, from J and its transpose; `between` has room for jacobian.rows elements of the type.
[[nodiscard]] LinearMap normal_equations(const CompressedRows& jacobian, const CompressedRows& transpose,
                                         double damping, void* between, DataType type);

}  // namespace isofold
