// Which of a run's random batches one process checks.
#pragma once

#include <cstdint>

namespace isofold_test {

// The batches first, first + step, ... below `end`; each draws from the seed and its own number.
struct BatchRange {
  std::int64_t end = 0;
  std::int64_t first = 0;
  std::int64_t step = 1;
};

}  // namespace isofold_test
