// Runs a batch through the library, whole and row by row, and compares every output bit with the oracle's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/exact_oracle.hpp"
#include "support/random_batch.hpp"

namespace isofold_test {

struct Mismatch {
  std::size_t row;  // in the batch
  std::string what;
};

struct BatchReport {
  std::vector<Mismatch> mismatches;  // at most one a row and call
  std::int64_t single_calls = 0;
};

// One row in `alone_every` is also called alone.
[[nodiscard]] BatchReport check_batch(const Batch& batch, ExactOracle& oracle, std::int64_t alone_every);

}  // namespace isofold_test
