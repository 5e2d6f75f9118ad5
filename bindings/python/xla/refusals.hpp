// Rows that cannot be fitted (a NaN, an infinity, a weight that is not positive), found on the host and kept
// out of the library's way. The CUDA executor judges them itself.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "isofold/isotonic.hpp"

namespace isofold::python {

class Refusals {
 public:
  // Judges whole rows, as a fit does.
  static Refusals of_rows(const IsotonicProblem& problem);
  // Judges whole blocks, as a gradient does: a refused row is one block.
  static Refusals of_blocks(const IsotonicProblem& problem, const std::uint8_t* block_starts);

  // The problem with zeros for the values of refused pieces and ones for their weights, in copies that live
  // as long as this.
  [[nodiscard]] IsotonicProblem harmless(const IsotonicProblem& problem);
  // Makes refused pieces NaN.
  void refuse(MutableArray array) const;

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> pieces_;  // [begin, end)
  std::vector<unsigned char> values_;
  std::vector<unsigned char> weights_;
};

}  // namespace isofold::python
