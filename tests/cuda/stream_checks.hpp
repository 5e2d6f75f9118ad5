// How a call behaves on its stream: it never waits for it, can be captured and replayed, keeps no memory, and
// gives the same bits whatever else the device does.
#pragma once

namespace isofold_test {

// Prints what fails and returns how much.
[[nodiscard]] int check_streams();

}  // namespace isofold_test
