// Isotonic regression of a batch of rows, and its gradient: the exact real values, each rounded once.
//
// The fit is the slope of the lower convex hull of the running totals (Barlow et al. 1972). Chunks of a long
// row are solved side by side and merged as segment lists ('Merge Hulls Without Copying Vertices', Sections 3
// and 4); what is added here is that every comparison and every rounding is decided exactly.
#pragma once

#include <cstdint>
#include <limits>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"

namespace isofold {

struct IsotonicProblem {
  ConstArray values;   // rows.total() finite values
  ConstArray weights;  // as many finite weights > 0, or absent: all ones. Their type is free of the values'.
  Rows rows;           //
  bool increasing = true;  // false: the non-increasing fit
  // Tied observations: rising offsets from 0 to rows.total() that cut the elements into groups, each of which
  // takes one value. Every row boundary must be a group boundary. nullptr: no ties.
  const std::int64_t* tie_offsets = nullptr;
  std::int64_t tie_groups = 0;  // tie_offsets holds tie_groups + 1 entries
  // The rounded fit is clipped to these, themselves rounded to the fit's type. Blocks stay unclipped.
  double lower_bound = -std::numeric_limits<double>::infinity();
  double upper_bound = std::numeric_limits<double>::infinity();
};

struct IsotonicFit {
  MutableArray fit;  // rows.total() values; its type is free of the input's. Or absent.
  std::uint8_t* block_starts =
      nullptr;  // rows.total() flags, 1 where a maximal block of equal exact mean starts
};

// O(n) work apart from the merge tree's O(m log m) for m chunks a row. Inputs are never written; outputs must
// not overlap them. On a status other than ok the outputs are unspecified.
[[nodiscard]] Status isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out,
                                         const Executor& executor = {});

// For Backend::cuda: the bytes of device memory that isotonic_regression on this problem takes as
// Executor::scratch.
[[nodiscard]] Status isotonic_regression_scratch(const IsotonicProblem& problem, std::int64_t* bytes);

struct IsotonicGradient {
  MutableArray values;  // dL/dy_i = RN(w_i G / W): exact, rounded once to this array's type
  // dL/dw_i = (y_i - RN64(S / W)) RN64(G / W) in float64, rounded to this array's type; in halves where the
  // difference is beyond float64.
  MutableArray weights;
};

// The gradient of a loss with respect to the values and weights, from `block_starts` as isotonic_regression
// wrote them and `gradient`, the loss's gradient with respect to the fit (any values: a block with a NaN or
// an infinity is NaN). Elements whose rounded fit lies strictly outside the problem's bounds pass nothing on.
[[nodiscard]] Status isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                                       ConstArray gradient, const IsotonicGradient& out,
                                       const Executor& executor = {});

// For Backend::cuda: the bytes of device memory that isotonic_gradient on this problem takes as
// Executor::scratch.
[[nodiscard]] Status isotonic_gradient_scratch(const IsotonicProblem& problem, std::int64_t* bytes);

// The weight of every block (its length without weights), in order, each the exact sum rounded once to
// float64. `out` has one entry for each set flag.
[[nodiscard]] Status block_weights(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                                   double* out, const Executor& executor = {});

}  // namespace isofold
