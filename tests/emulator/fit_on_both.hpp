// One fit on the CPU executor and on the emulated CUDA executor, compared bit by bit.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/gradient_call.hpp"

namespace isofold_test {

// Values, weights, rows, direction, bounds and alignment are those of a gradient's case.
using FitCase = GradientCase;

struct Fit {
  HostFloats values{DataType::float64, 0};
  std::vector<std::uint8_t> starts;
};

[[nodiscard]] Fit fit_on_cpu(const FitCase& row, DataType type);

// In memory between poisoned margins. Fails the running test if a margin or an input was written.
[[nodiscard]] Fit fit_on_device(const FitCase& row, DataType type);

[[nodiscard]] testing::AssertionResult same_fit(const FitCase& row, const Fit& found, const Fit& expected);

// All three, to the values' type.
[[nodiscard]] testing::AssertionResult fits_agree(const FitCase& row);

// Tests of kernels: shared memory holds nothing of use when a block begins, and the order of blocks and
// threads is as it was when a test is over.
class OnDevice : public testing::Test {
 protected:
  static void SetUpTestSuite();
  void TearDown() override;
};

}  // namespace isofold_test
