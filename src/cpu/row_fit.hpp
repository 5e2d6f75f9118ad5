// From the vertices of a row's hull to its fit: every block takes its exact mean, rounded once (paper,
// Section 3.4).
#pragma once

#include <cstdint>
#include <vector>

#include "algorithm/bounds.hpp"
#include "cpu/chunk.hpp"
#include "cpu/row_hull.hpp"
#include "isofold/isotonic.hpp"

namespace isofold::cpu {

// Where and how the fit of one row is written.
struct FitTarget {
  IsotonicFit out;
  std::int64_t begin;  // of the row in the outputs
  double sign;
  Format format;
  Bounds bounds;
};

// Where the row's fit is to be stored, if that is just as it is formed, in doubles; else null.
[[nodiscard]] double* fit_in_place(const FitTarget& target);

// Rounds and stores `count` values of the fit from `first` on, with sign and bounds. Uses them up.
void store_fit(const FitTarget& target, std::int64_t first, std::int64_t count, double* fit);

// Writes the fit of a row that is one loaded chunk, whose hull's vertices are in `mask`. Uses up the chunk's
// values.
void write_chunk_fit(Chunk* chunk, const std::uint32_t* mask, const FitTarget& target);

// Writes the fit of a row of several chunks.
class RowFitWriter {
 public:
  RowFitWriter(const RowHull& hull, const RowView& row, const FitTarget& target);

  [[nodiscard]] std::int64_t segments() const { return root_.count; }
  // Stage 3: the mean of the block that leaves segment i, for every i.
  void find_leaving_mean(std::int64_t segment);
  // Stage 4: one chunk's elements.
  void write_chunk(std::int64_t chunk, Chunk* scratch) const;

 private:
  [[nodiscard]] double mean_between_points(std::int64_t begin, std::int64_t end) const;

  const RowHull& hull_;
  RowView row_;
  FitTarget target_;
  Hull root_;
  std::vector<double> leaving_means_;
};

}  // namespace isofold::cpu
