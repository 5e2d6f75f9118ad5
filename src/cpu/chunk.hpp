// One chunk of a row: loads it, surveys it, finds the vertices of its hull.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithm/row_view.hpp"
#include "cpu/precise_turns.hpp"
#include "cpu/survey.hpp"
#include "cpu/tile_filter.hpp"
#include "exact/certified_sum.hpp"

namespace isofold::cpu {

// Elements that share one entry of a row's table of partial sums, and one word of its vertex mask.
inline constexpr std::int64_t kTile = 32;

class Chunk {
 public:
  // chunk_size: at most so many elements will be loaded at once.
  Chunk(std::int64_t chunk_size, bool weighted);

  // Converts the row's elements first .. first + count - 1 and surveys them. Returns whether they are
  // allowed.
  bool load(const RowView& row, std::int64_t first, std::int64_t count);

  // Sets bit k of the mask, cleared before, for every vertex k of the loaded chunk's hull but its end point.
  void find_hull(std::uint32_t* mask);

  // Entry t: the sums of w y, and of w unless null, over the elements before tile t. Returns the chunk's
  // totals.
  struct Totals {
    DoubleDouble total;
    DoubleDouble weight;
  };
  Totals tile_sums(DoubleDouble* totals, DoubleDouble* weights) const;

  // Buffers of chunk_size doubles, free for other use while no chunk is loaded. That of the values holds them
  // only where they had to be converted.
  [[nodiscard]] double* value_buffer() { return values_.data() + kPad; }
  [[nodiscard]] double* weight_buffer() { return weights_.data(); }

  [[nodiscard]] const Survey& survey() const { return survey_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] const double* values() const { return source_; }
  [[nodiscard]] const double* weights() const { return weighted_ ? weights_.data() : nullptr; }

 private:
  void copy_edges();
  bool scan();
  [[nodiscard]] std::int64_t words() const { return (count_ + kTile - 1) / kTile; }
  [[nodiscard]] std::int64_t number_of_candidates() const;
  void find_candidates();
  template <bool Weighted>
  bool chain(std::uint32_t* mask, bool filtered);
  DoubleDouble prefix_tiles(const double* values, const double* weights, DoubleDouble* out) const;

  static constexpr std::int64_t kPad = 2;  // what window_words reads before the first value

  bool weighted_;
  bool scanned_ = false;  // tile_totals_, depths_ and total_ are those of the loaded chunk
  std::int64_t count_ = 0;
  Survey survey_;
  const double* source_ = nullptr;  // the values: in values_, or where they stand in the row
  std::vector<double> values_;
  std::vector<double> weights_;
  std::vector<double> products_;           // w y, weighted only
  std::vector<std::uint32_t> candidates_;  // bits that passed the local tests
  std::vector<double> total_prefix_;       // plain doubles
  std::vector<double> weight_prefix_;
  std::vector<std::int32_t> stack_;
  std::vector<DoubleDouble> tile_totals_;  // before each tile
  std::vector<double> depths_;             // of tiles
  std::vector<double> tile_sums_;          // roughly, padded
  DoubleDouble total_;
  double first_tile_[kPad + kTile + 1];  // of values that stand in the row, with neighbours of their own
  double last_tile_[kPad + kTile + 1];
  PaddedTiles padded_{};
  TileFilter filter_;
  PreciseTurns precise_;  // asked where plain doubles left a turn undecided
};

}  // namespace isofold::cpu
