// The kernels of histograms and best splits against the CPU executor, bit by bit: the checks of the GPU
// tester, with blocks and threads in several orders.
#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/tree_checks.hpp"
#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"

namespace isofold_test {
namespace {

class Trees : public OnDevice, public testing::WithParamInterface<std::uint64_t> {
 protected:
  void SetUp() override {
    simt::shuffle_blocks(GetParam() % 3);
    simt::shuffle_threads(GetParam() % 4);
  }
};

TEST_P(Trees, OfRandomProblems) { EXPECT_EQ(check_random_trees({60}, 500 + GetParam()), 0); }
TEST_P(Trees, OfRefusedGradients) { EXPECT_EQ(check_refused_gradients_of_trees(), 0); }
TEST_P(Trees, Subtraction) { EXPECT_EQ(check_device_subtraction(GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Seeds, Trees, testing::Range<std::uint64_t>(0, 4));

class LargeTrees : public OnDevice {};

// More rows than a block's counts hold, so that there are several rounds of blocks.
TEST_F(LargeTrees, OfManyRows) { EXPECT_EQ(check_many_rows(300000, 1), 0); }
TEST_F(LargeTrees, OfWideBins) { EXPECT_EQ(check_wide_bins(2), 0); }

}  // namespace
}  // namespace isofold_test
