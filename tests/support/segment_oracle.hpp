// Sums, dots and norms of segments in exact integers. Independent of the library.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <vector>

#include "isofold/segmented.hpp"
#include "support/exact_sums.hpp"

namespace isofold_test {

class SegmentOracle {
 public:
  SegmentOracle();

  // The bits of the value of the elements begin .. end - 1, in the type. `b` is used for dots only.
  [[nodiscard]] std::uint64_t reduce(isofold::SegmentValue value, const std::vector<double>& a,
                                     const std::vector<double>& b, std::int64_t begin, std::int64_t end,
                                     DataType type);

 private:
  void add(Int128 significand, int exponent);
  // What was added, as total_ 2^exponent; forgets it.
  int collect();

  std::vector<Int128> sums_;  // by exponent: up to 2^20 products of 53-bit integers
  std::vector<int> touched_;
  mpz_class total_;
};

}  // namespace isofold_test
