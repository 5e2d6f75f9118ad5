// One long row of a family, ready for the library, for the oracle and for the optimality conditions.
#pragma once

#include <cstdint>
#include <string>

#include "support/fit_call.hpp"
#include "support/oracle_row.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {

struct LongRow {
  FitCall call;
  GradientCall gradient;
  std::string name;

  // The same problem for the oracles.
  [[nodiscard]] OracleRow oracle_row() const;
};

enum class Weighting { none, ones_to_nine, extreme, any, overflowing };

struct LongRowOptions {
  DataType type = DataType::float64;
  Weighting weighting = Weighting::none;
  bool increasing = true;
  bool with_gradient = false;
  std::uint64_t seed = 1;
};

[[nodiscard]] LongRow make_long_row(const Family& family, std::int64_t length, const LongRowOptions& options);

}  // namespace isofold_test
