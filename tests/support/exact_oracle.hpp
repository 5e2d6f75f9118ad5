// The exact answer for one row, by pool-adjacent-violators on exact integers.
//
// Values, weights and gradient are integers times one power of two each. Where the sums fit, they are held in
// 128 and 64 bits; otherwise in GMP integers. Both are exact; nothing is shared with the library's own
// arithmetic.
#pragma once

#include <memory>

#include "support/oracle_row.hpp"

namespace isofold_test {

class ExactOracle {
 public:
  ExactOracle();
  ~ExactOracle();
  ExactOracle(const ExactOracle&) = delete;
  ExactOracle& operator=(const ExactOracle&) = delete;

  // O(n) integer operations. Keeps its memory from call to call.
  void solve(const OracleRow& row, OracleAnswer& answer);

  // Rows answered in fixed-size integers and in GMP integers so far.
  [[nodiscard]] std::int64_t narrow_rows() const;
  [[nodiscard]] std::int64_t wide_rows() const;

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace isofold_test
