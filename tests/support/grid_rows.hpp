// Rows too long to keep twice: whole numbers, each computed from its position alone, whose sums are exact in
// 64 bits.
#pragma once

#include <cstdint>
#include <vector>

namespace isofold_test {

// Element i is 2^-12 times a whole number below 2^24 in magnitude, so a float32 holds it. Within a row
// the numbers follow a trend that rises, in short windows of long rows steeply, and over an eighth of every
// row falls; noise lies on top, as wide as a hash of the place says. So there are blocks of all sizes: single
// elements, runs of equal values, a block of an eighth of the row.
class GridRows {
 public:
  // Rising offsets from 0, one more than there are rows. At most 2^36 elements in all.
  GridRows(std::vector<std::int64_t> offsets, std::uint64_t seed)
      : offsets_(std::move(offsets)), seed_(seed) {}

  [[nodiscard]] const std::vector<std::int64_t>& offsets() const { return offsets_; }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }
  [[nodiscard]] std::int64_t total() const { return offsets_.back(); }

  // The whole numbers of elements begin .. end - 1.
  void fill(std::int64_t begin, std::int64_t end, std::int32_t* out) const;
  // Their values.
  void fill(std::int64_t begin, std::int64_t end, float* out) const;

 private:
  template <class Put>
  void for_each(std::int64_t begin, std::int64_t end, Put put) const;

  std::vector<std::int64_t> offsets_;
  std::uint64_t seed_;
};

// Values are whole numbers times 2^kGridExponent.
inline constexpr int kGridExponent = -12;

}  // namespace isofold_test
