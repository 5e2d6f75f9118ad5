// A row's sums in long accumulators, for what nothing faster decides. Totals at the chunks' ends are summed
// once, by whoever asks first; any range then costs at most two partial chunks.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "algorithm/exact_blocks.hpp"
#include "algorithm/row_view.hpp"

namespace isofold::cpu {

class ExactRow {
 public:
  ExactRow(const RowView& row, std::int64_t chunk_size) : row_(row), chunk_size_(chunk_size) {}

  // Over the elements [begin, end).
  [[nodiscard]] ExactSums sums(std::int64_t begin, std::int64_t end) const;

 private:
  void add_elements(std::int64_t begin, std::int64_t end, ExactSums* sums) const;
  [[nodiscard]] ExactSums before(std::int64_t index) const;

  RowView row_;
  std::int64_t chunk_size_;
  mutable std::once_flag built_;
  mutable std::vector<ExactSums> prefix_;  // entry j: before chunk j
};

}  // namespace isofold::cpu
