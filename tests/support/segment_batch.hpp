// Random batches of segments: values that cancel, over- and underflow midway, tie, or are nothing special.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isofold/segmented.hpp"
#include "support/float_formats.hpp"
#include "support/random.hpp"

namespace isofold_test {

struct SegmentBatch {
  DataType type = DataType::float64;
  std::vector<double> a;
  std::vector<double> b;
  std::vector<std::int64_t> offsets = {0};
  std::vector<const char*> families;  // of the segments
};

// `count` segments of up to `longest` elements, mostly short ones.
[[nodiscard]] SegmentBatch random_segments(Random& random, DataType type, std::int64_t count,
                                           std::int64_t longest);

// The numbers in the type's own memory.
[[nodiscard]] std::vector<unsigned char> stored(DataType type, const std::vector<double>& numbers);

}  // namespace isofold_test
