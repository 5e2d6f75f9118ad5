// Segment reductions on the GPU against the CPU's, bit by bit. Each check prints what fails and returns how
// much.
#pragma once

#include <cstdint>

#include "cuda/batch_range.hpp"

namespace isofold_test {

// Random ragged and rectangular batches of every type, between poisoned margins, at any alignment.
[[nodiscard]] int check_segment_batches(const BatchRange& batches, std::uint64_t seed);

// Segments of up to `longest` elements, with sums that cancel and sums that do not.
[[nodiscard]] int check_long_segments(std::int64_t longest, std::uint64_t seed);

// A segment wherever it may start, and among how many others.
[[nodiscard]] int check_segment_places();

// Offsets that do not rise from 0 to the end: all NaN, and nothing else written.
[[nodiscard]] int check_bad_segment_offsets();

}  // namespace isofold_test
