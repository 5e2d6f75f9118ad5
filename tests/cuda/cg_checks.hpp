// Conjugate gradients on the GPU against the CPU's, bit by bit: solutions, iterations, statuses, norms. Each
// check prints what fails and returns how much.
#pragma once

#include <cstdint>

namespace isofold_test {

// Random batches of banded and compressed systems of up to `longest` unknowns, some of which are bad.
[[nodiscard]] int check_conjugate_gradients(std::int64_t longest, std::uint64_t seed);

}  // namespace isofold_test
