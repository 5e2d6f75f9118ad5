// Tie groups on the device: the CPU executor's bits and blocks, rows with bad tie offsets refused and the
// others not, no waiting, graphs.
#pragma once

#include <cstdint>

#include "cuda/batch_range.hpp"

namespace isofold_test {

// Prints what fails and returns how much. `streams`: waiting and graphs, too.
[[nodiscard]] int check_ties(const BatchRange& batches, std::uint64_t seed, bool streams);

}  // namespace isofold_test
