// How a gradient behaves on its stream: as a fit does (stream_checks.hpp).
#pragma once

namespace isofold_test {

// Prints what fails and returns how much.
[[nodiscard]] int check_gradient_streams();

}  // namespace isofold_test
