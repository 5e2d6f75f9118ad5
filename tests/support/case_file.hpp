// Reads the exact cases: a JSON array of flat objects whose values are strings, booleans, null, and arrays of
// hex-float strings or of integers. Anything else in the file is an error, naming the line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/float_formats.hpp"

namespace isofold_test {

struct IsotonicCase {
  std::string name;
  DataType type = DataType::none;
  bool increasing = true;
  std::vector<double> values;
  std::vector<double> weights;  // empty: none
  std::vector<double> fit;
  std::vector<std::int64_t> block_starts;
};

struct DotCase {
  std::string name;
  DataType type = DataType::none;
  std::vector<double> a;
  std::vector<double> b;
  std::vector<std::int64_t> offsets;
  std::vector<double> dot;
};

// Both throw std::runtime_error.
[[nodiscard]] std::vector<DotCase> read_dot_cases(const std::string& path);
[[nodiscard]] std::vector<IsotonicCase> read_isotonic_cases(const std::string& path);

}  // namespace isofold_test
