// Pool adjacent violators on exact sums: short, obvious, linear. The reference executor is this; the CPU
// executor turns to it for the rare chunk whose exponents spread too far for anything faster.
#pragma once

#include <cstdint>
#include <vector>

#include "exact/long_accumulator.hpp"

namespace isofold {

// The exact sums of w and w y over a range of elements.
struct ExactSums {
  SumAccumulator weight;
  ProductAccumulator total;

  void add(double value, double w) {
    weight.add(w);
    total.add_product(value, w);
  }
  void add(const double* values, const double* weights, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) add(values[i], weights != nullptr ? weights[i] : 1.0);
  }
  ExactSums& operator+=(const ExactSums& other) {
    weight += other.weight;
    total += other.total;
    return *this;
  }
  ExactSums& operator-=(const ExactSums& other) {
    weight -= other.weight;
    total -= other.total;
    return *this;
  }
};

// Whether the mean of `left` is strictly below that of `right`: the turn between them.
inline bool mean_rises(const ExactSums& left, const ExactSums& right) {
  return compare(product(right.total.value(), left.weight.value()),
                 product(left.total.value(), right.weight.value())) > 0;
}

struct ExactBlock {
  std::int64_t start;
  ExactSums sums;
};

// The maximal blocks of the non-decreasing fit. weights may be nullptr: ones.
inline std::vector<ExactBlock> exact_blocks(const double* values, const double* weights, std::int64_t count) {
  std::vector<ExactBlock> blocks;
  for (std::int64_t i = 0; i < count; ++i) {
    ExactBlock block{i, {}};
    block.sums.add(values[i], weights != nullptr ? weights[i] : 1.0);
    while (!blocks.empty() && !mean_rises(blocks.back().sums, block.sums)) {
      block.start = blocks.back().start;
      block.sums += blocks.back().sums;
      blocks.pop_back();
    }
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace isofold
