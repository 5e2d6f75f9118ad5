// Short rows without weights, eight side by side, a lane each: every pair of points is looked at, which takes
// no branch and no stack, and decides all but ties and what is next to them.
#pragma once

#include <cstdint>

#include "exact/format.hpp"

namespace isofold::cpu {

inline constexpr int kLaneRow = 16;  // elements of the longest such row

class LaneRows {
 public:
  static constexpr int kMost = 8 * kLaneRow;

  // Fits eight rows of one length, 2 to kLaneRow, one after the other in `values`; fits are rounded to
  // float64 or float32; `starts` gets ones where blocks start. Where the length is no multiple of eight,
  // `kLaneRow` places behind `values` are read and as many behind `fits` and `starts` written. Bit i of the
  // answer: row i is not fitted, for it takes more than doubles to decide it, or is not allowed.
  [[nodiscard]] static std::uint32_t fit(const double* values, int length, Format format, double* fits,
                                         std::uint8_t* starts);

  // Buffers for the above.
  [[nodiscard]] double* values() { return values_; }
  [[nodiscard]] double* fits() { return fits_; }
  [[nodiscard]] std::uint8_t* starts() { return starts_; }

 private:
  double values_[kMost + kLaneRow] = {};
  double fits_[kMost + kLaneRow] = {};
  std::uint8_t starts_[kMost + kLaneRow] = {};
};

// Eight blocks of 2 to kLaneRow elements.
struct LaneBlocks {
  std::int64_t starts[8];
  double counts[8];
};

// Their means, rounded to float64 or float32. `kLaneRow` elements are read from each start on; the sum of all
// magnitudes is below 2^900. `pair_error`: of 64 operations, 0 where sums are exact. Bit i of the answer:
// mean i is left undecided.
[[nodiscard]] std::uint32_t lane_means(const double* values, const LaneBlocks& blocks, Format format,
                                       double pair_error, double* means);

}  // namespace isofold::cpu
