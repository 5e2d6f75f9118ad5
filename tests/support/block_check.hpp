// Whether the fit and blocks of rows too long to fit again are right: every block is judged in exact
// integers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "support/grid_rows.hpp"

namespace isofold_test {

struct BlockReport {
  std::int64_t faults = 0;
  std::string first_fault;  // the one at the lowest position
  std::int64_t blocks = 0;
  std::int64_t shortest = 0;
  std::int64_t longest = 0;
};

// The non-decreasing fit of `rows` in float32 with its block flags. They are right if and only if
//   - every row begins a block, and in a row the blocks' means rise strictly,
//   - in a block, no first part has a mean below the block's,
//   - every element's fit is its block's mean rounded once (to nearest, ties to even).
// The first two say that the blocks are the edges of the lower hull of the cumulative sum diagram.
class BlockCheck {
 public:
  // Work is handed to `threads` threads by segments of `segment` elements.
  BlockCheck(const GridRows& rows, int threads, std::int64_t segment = std::int64_t{1} << 20);
  ~BlockCheck();
  BlockCheck(const BlockCheck&) = delete;
  BlockCheck& operator=(const BlockCheck&) = delete;

  // The next `count` elements: a multiple of `segment`, but for the last call.
  void take(const float* fit, const std::uint8_t* block_starts, std::int64_t count);
  // After all elements were taken: judges the blocks that cross segments.
  [[nodiscard]] BlockReport finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

// sum / count * 2^kGridExponent, rounded once to float32. |sum| < 2^24 count.
[[nodiscard]] float rounded_grid_mean(std::int64_t sum, std::int64_t count);

}  // namespace isofold_test
