// Soft ranks, soft sorting and soft top-k in L2: projections onto permutahedra, row by row of a rectangle
// (Blondel, Teboul, Berthet and Djolonga 2020; Sander et al. 2023). Rows come sorted, as every array library
// sorts them well. With a and b both falling, on every block of the non-increasing fit of a - b
//
//     P(a, b)_i = (a_i - mean a) + mean b,
//
// all in float64 in this order, with exact means rounded once, and the result rounded once. The same bits on
// every executor.
#pragma once

#include <cstdint>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/status.hpp"

namespace isofold {

enum class Projection : std::uint8_t {
  ranks,   // a = s / strength, b = (n, ..., 1)
  sorted,  // a = (n, ..., 1) / strength, b = s
  top,     // a = s / strength, b = 1 for the first k, then 0; clipped to [0, 1]
};

struct ProjectionProblem {
  Projection kind = Projection::ranks;
  std::int64_t rows = 0;
  std::int64_t length = 0;              // of every row
  const std::int64_t* order = nullptr;  // where in its row each sorted element belongs
  double sign = 1;                      // 1 or -1; s = sign * sorted falls in every row
  double strength = 1;                  // positive
  std::int64_t k = 0;                   // for top
};

// `sorted`: rows * length values of float32 or float64, whose type is that of `out`. Ranks and top come in
// the order of the unsorted rows, sorted ones in their own, times sign. `block_starts`, of the sorted rows,
// is for the gradient. A row that cannot be fitted is an error on a CPU, and NaN on a device.
[[nodiscard]] Status projection(const ProjectionProblem& problem, ConstArray sorted, MutableArray out,
                                std::uint8_t* block_starts, const Executor& executor = {});

// The gradient in the unsorted values from that in the projection, both in its order and of its type, as
// `result` is. Where the result is NaN, so is its block's gradient.
[[nodiscard]] Status projection_gradient(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                                         ConstArray result, ConstArray gradient, MutableArray out,
                                         const Executor& executor = {});

// For Backend::cuda: the bytes of device memory that either call takes as Executor::scratch.
[[nodiscard]] Status projection_scratch(const ProjectionProblem& problem, std::int64_t* bytes);
[[nodiscard]] Status projection_gradient_scratch(const ProjectionProblem& problem, std::int64_t* bytes);

}  // namespace isofold
