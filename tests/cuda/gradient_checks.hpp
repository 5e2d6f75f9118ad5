// The gradient on the GPU against the CPU's, bit by bit: random ragged batches, long rows, sums that nothing
// short of exact ones decides, refused rows, behaviour on streams.
#pragma once

#include <cstdint>

namespace isofold_test {

// Prints what fails and returns how much. Rows of up to `longest` elements; `streams` leaves that part out
// when false.
[[nodiscard]] int check_gradients(std::int64_t batches, std::int64_t longest, std::uint64_t seed,
                                  bool streams);

}  // namespace isofold_test
