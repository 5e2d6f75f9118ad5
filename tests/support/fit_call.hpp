// One call of isotonic_regression and of isotonic_gradient on plain vectors, for tests that look at results.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "isofold/isotonic.hpp"
#include "support/guarded_array.hpp"

namespace isofold_test {

struct FitCall {
  std::vector<double> values;
  std::vector<double> weights;            // empty: none
  std::vector<std::int64_t> offsets;      // empty: one row
  std::vector<std::int64_t> tie_offsets;  // empty: none
  bool increasing = true;
  double lower_bound = -std::numeric_limits<double>::infinity();
  double upper_bound = std::numeric_limits<double>::infinity();
  DataType values_type = DataType::float64;
  DataType weights_type = DataType::float64;
  DataType fit_type = DataType::none;  // none: the values' type
  isofold::Executor executor;
  Layout layout;

  [[nodiscard]] DataType chosen_fit_type() const {
    return fit_type == DataType::none ? values_type : fit_type;
  }
};

struct FitAnswer {
  isofold::Status status;
  std::vector<std::uint64_t> bits;
  std::vector<std::uint8_t> starts;

  [[nodiscard]] std::vector<double> fit(DataType type) const;
  [[nodiscard]] std::vector<std::int64_t> blocks() const;
};

// Fails the running test if an input or the memory around an array was written.
[[nodiscard]] FitAnswer run_fit(const FitCall& call);

struct GradientCall {
  std::vector<double> gradient;
  DataType gradient_type = DataType::none;         // none: the values' type
  DataType gradient_values_type = DataType::none;  // none: the values' type
  DataType gradient_weights_type = DataType::float64;
};

struct GradientAnswer {
  isofold::Status status;
  std::vector<std::uint64_t> values;
  std::vector<std::uint64_t> weights;
  std::vector<double> block_weights;
};

[[nodiscard]] GradientAnswer run_gradient(const FitCall& call, const std::vector<std::uint8_t>& starts,
                                          const GradientCall& gradient);

}  // namespace isofold_test
