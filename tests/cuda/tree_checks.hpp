// Histograms and best splits on a device against the CPU executor, bit by bit, over random problems.
#pragma once

#include <cstdint>

#include "cuda/batch_range.hpp"

namespace isofold_test {

// Each returns how many problems came out differently, and says which.
int check_random_trees(const BatchRange& problems, std::uint64_t seed);
int check_many_rows(std::int64_t rows, std::uint64_t seed);  // more than one block's counts hold, few bins
int check_wide_bins(std::uint64_t seed);                     // bins that no shared memory holds, many nodes
int check_refused_gradients_of_trees();                      // what the host cannot see
int check_device_subtraction(std::uint64_t seed);

}  // namespace isofold_test
