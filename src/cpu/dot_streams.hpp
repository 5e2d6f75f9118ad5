// Sums and dot products of stretches of floats, streaming, each with its proven error.
#pragma once

#include <cstdint>

#include "exact/compensated_sum.hpp"

namespace isofold::cpu {

// A few thousand elements at a time keep the errors small. Pointers of any alignment.
[[nodiscard]] CompensatedSum sum_stream(const float* a, std::int64_t count);
[[nodiscard]] CompensatedSum sum_stream(const double* a, std::int64_t count);
[[nodiscard]] CompensatedSum dot_stream(const float* a, const float* b, std::int64_t count);
// Products that underflow are not in the error (`products_may_underflow`).
[[nodiscard]] CompensatedSum dot_stream(const double* a, const double* b, std::int64_t count);

// False: no product of two numbers that are not zero is below 2^-960, so that the low parts of all are exact.
[[nodiscard]] bool products_may_underflow(const double* a, const double* b, std::int64_t count);

}  // namespace isofold::cpu
