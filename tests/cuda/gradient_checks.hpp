// The gradient on the GPU against the CPU's, bit by bit. Each check prints what fails and returns how much.
#pragma once

#include <cstdint>

#include "cuda/batch_range.hpp"

namespace isofold_test {

// Random ragged and rectangular batches.
[[nodiscard]] int check_gradient_batches(const BatchRange& batches, std::uint64_t seed);

// Rows of up to `longest` elements, of every shape.
[[nodiscard]] int check_gradients_of_long_rows(std::int64_t longest, std::uint64_t seed);

// Sums that nothing short of exact ones decides.
[[nodiscard]] int check_hidden_ties(std::int64_t longest);

// Values whose distance from their block's mean is beyond float64, with and without a share to pass on.
[[nodiscard]] int check_gradients_of_far_values();

[[nodiscard]] int check_refused_gradients();

}  // namespace isofold_test
