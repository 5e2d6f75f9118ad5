// One row of an isotonic problem as the oracles see it: every input decoded to double, which is exact for all
// four types.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "support/float_formats.hpp"

namespace isofold_test {

struct OracleRow {
  std::vector<double> values;
  std::vector<double> weights;           // empty: all ones
  std::vector<double> gradient;          // the incoming gradient; empty: none asked for
  std::vector<std::int64_t> tie_starts;  // first element of every tie group, from 0; empty: no ties
  bool increasing = true;
  double lower_bound = -std::numeric_limits<double>::infinity();
  double upper_bound = std::numeric_limits<double>::infinity();

  DataType values_type = DataType::float64;
  DataType fit_type = DataType::float64;
  DataType gradient_values_type = DataType::float64;
  DataType gradient_weights_type = DataType::none;  // none: not wanted

  [[nodiscard]] std::int64_t length() const { return static_cast<std::int64_t>(values.size()); }
};

// What isofold must give for the row: bit patterns of the types asked for.
struct OracleAnswer {
  std::vector<std::uint64_t> fit;
  std::vector<std::uint8_t> block_starts;
  std::vector<std::uint64_t> gradient_values;
  std::vector<std::uint64_t> gradient_weights;
  std::vector<double> block_weights;
};

// The parts of the answer that follow from a block's roundings alone, shared by both oracles.

// Clips the rounded fit to the bounds, themselves rounded to its type.
[[nodiscard]] std::uint64_t clip_fit(DataType type, std::uint64_t fit, double lower_bound,
                                     double upper_bound);

// True when the rounded fit lies strictly outside the rounded bounds, where no gradient passes.
[[nodiscard]] bool is_clipped(DataType type, std::uint64_t fit, double lower_bound, double upper_bound);

// (y - mean) * slope in float64, in halves where y - mean is beyond it, rounded to the type.
[[nodiscard]] std::uint64_t weight_gradient(DataType type, double y, double mean, double slope);

}  // namespace isofold_test
