// What an executor tells the interface above it, which words the status.
#pragma once

#include <cstdint>

namespace isofold {

enum class Outcome : std::uint8_t {
  done,
  bad_input,    // a value or weight that is not allowed: the interface finds the first and names it
  interrupted,  // should_stop said so
};

}  // namespace isofold
