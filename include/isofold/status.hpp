// What a call reports: a code, a sentence naming the argument, and where in it the fault is.
#pragma once

#include <cstdint>
#include <string>

namespace isofold {

enum class StatusCode {
  ok,
  invalid_argument,     // a null pointer, a negative size, crossed bounds
  not_finite,           // a NaN or an infinity in values, weights or knots
  weight_not_positive,  // a weight that is zero or negative
  bad_offsets,          // row or tie offsets that do not rise from 0 to the number of elements
  unsupported,          // the executor or the type asked for is not in this build
  out_of_memory,
  interrupted,   // Executor::should_stop returned true; outputs are unspecified
  device_error,  // CUDA reported an error; the message holds it
};

struct Status {
  StatusCode code = StatusCode::ok;
  std::string message;         // empty when ok
  std::int64_t row = -1;       // the row at fault, -1 when the fault has none
  std::int64_t position = -1;  // the position inside that row (inside the array when row is -1)

  [[nodiscard]] bool ok() const noexcept { return code == StatusCode::ok; }
};

}  // namespace isofold
