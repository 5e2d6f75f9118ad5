// The gradient on the GPU against the CPU's, bit by bit. Each check prints what fails and returns how much.
#pragma once

#include <cstdint>

namespace isofold_test {

// Random ragged and rectangular batches.
[[nodiscard]] int check_gradient_batches(std::int64_t batches, std::uint64_t seed);

// Rows of up to `longest` elements, of every shape.
[[nodiscard]] int check_gradients_of_long_rows(std::int64_t longest, std::uint64_t seed);

// Sums that nothing short of exact ones decides.
[[nodiscard]] int check_hidden_ties(std::int64_t longest);

[[nodiscard]] int check_refused_gradients();

}  // namespace isofold_test
