// How a flat array of values is cut into rows: one row, a rectangle, or ragged rows by offsets.
#pragma once

#include <cstdint>

namespace isofold {

struct Rows {
  std::int64_t count = 0;                 // number of rows
  std::int64_t length = 0;                // elements in each row of a rectangle
  const std::int64_t* offsets = nullptr;  // ragged: count + 1 rising offsets, from 0 to the total
  std::int64_t elements = -1;             // ragged on a device, whose offsets the host cannot read: the total

  static Rows single(std::int64_t length) { return {1, length, nullptr, -1}; }
  static Rows rectangle(std::int64_t count, std::int64_t length) { return {count, length, nullptr, -1}; }
  // Row r holds the elements offsets[r] .. offsets[r + 1] - 1.
  static Rows ragged(const std::int64_t* offsets, std::int64_t count) { return {count, 0, offsets, -1}; }
  // The same with offsets in device memory, for Backend::cuda; `elements` is the last of them.
  static Rows ragged_on_device(const std::int64_t* offsets, std::int64_t count, std::int64_t elements) {
    return {count, 0, offsets, elements};
  }

  [[nodiscard]] std::int64_t begin(std::int64_t row) const {
    return offsets != nullptr ? offsets[row] : row * length;
  }
  [[nodiscard]] std::int64_t end(std::int64_t row) const {
    return offsets != nullptr ? offsets[row + 1] : (row + 1) * length;
  }
  [[nodiscard]] std::int64_t total() const {
    return count == 0 ? 0 : (elements >= 0 ? elements : end(count - 1));
  }
};

}  // namespace isofold
