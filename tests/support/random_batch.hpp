// A batch of random rows that share one call: what is asked for, and the rows. Reproducible from seed and
// index.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isofold/executor.hpp"
#include "support/guarded_array.hpp"
#include "support/oracle_row.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {

inline constexpr std::int64_t kRowsPerBatch = 256;

struct BatchOptions {
  std::uint64_t seed = 1;
  std::int64_t max_length = 70;
  std::int64_t chunk_size = -1;    // -1: 32, 64 and the default in turn
  const Family* family = nullptr;  // nullptr: every family
  isofold::Backend backend = isofold::Backend::cpu;
};

struct Batch {
  std::int64_t index = 0;
  DataType values_type = DataType::float64;
  DataType weights_type = DataType::none;
  DataType gradient_type = DataType::none;  // none: gradients are not asked for
  bool rectangle = false;
  bool tied = false;
  isofold::Executor executor;
  Layout layout;

  std::vector<OracleRow> rows;
  std::vector<std::string_view> families;  // of each row

  [[nodiscard]] std::int64_t row_index(std::size_t row) const {
    return index * kRowsPerBatch + static_cast<std::int64_t>(row);
  }
};

[[nodiscard]] Batch make_batch(const BatchOptions& options, std::int64_t index);

// The row and all that was asked of it, to paste into a test: types, flags and hex floats.
[[nodiscard]] std::string describe(const Batch& batch, std::size_t row);

}  // namespace isofold_test
