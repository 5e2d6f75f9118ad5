// The gradient's kernels against the CPU executor, bit by bit: the checks of the GPU tester, and the order of
// threads and blocks.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda/gradient_call.hpp"
#include "cuda/gradient_checks.hpp"
#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

class Gradients : public OnDevice, public testing::WithParamInterface<std::uint64_t> {
 protected:
  void SetUp() override {
    simt::shuffle_blocks(GetParam() % 3);
    simt::shuffle_threads(GetParam() % 4);
  }
};

TEST_P(Gradients, OfRandomBatches) { EXPECT_EQ(check_gradient_batches({6}, 100 + GetParam()), 0); }
TEST_P(Gradients, OfLongRows) { EXPECT_EQ(check_gradients_of_long_rows(9001, GetParam()), 0); }
TEST_P(Gradients, BehindHiddenTies) { EXPECT_EQ(check_hidden_ties(16384), 0); }
TEST_P(Gradients, OfFarValues) { EXPECT_EQ(check_gradients_of_far_values(), 0); }
TEST_P(Gradients, OfRefusedRows) { EXPECT_EQ(check_refused_gradients(), 0); }

// Blocks over hundreds of chunks, which are added up in groups of 128: a few block starts in a falling row.
TEST_P(Gradients, OfBlocksOverManyChunks) {
  Random random(31, GetParam());
  constexpr std::int64_t kLength = 700003;
  std::vector<double> values;
  std::vector<double> weights;
  std::vector<double> gradient;
  std::vector<std::uint8_t> starts(kLength);
  for (std::int64_t i = 0; i < kLength; ++i) {
    values.push_back(static_cast<double>(static_cast<float>(random.normal())));
    weights.push_back(static_cast<double>(random.between(1, 9)));
    gradient.push_back(static_cast<double>(static_cast<float>(random.normal())));
  }
  starts[0] = 1;
  const auto blocks = static_cast<std::int64_t>(GetParam());
  for (std::int64_t b = 0; b < blocks; ++b) starts[static_cast<std::size_t>(random.below(60000))] = 1;
  starts[static_cast<std::size_t>(600 * 1000 + random.below(90000))] = 1;
  GradientCase row;
  row.name = "long blocks";
  row.values = {random.chance(0.5) ? DataType::float32 : DataType::float64, values};
  if (GetParam() % 2 == 1) row.weights = {DataType::float32, weights};
  row.gradient = {random.chance(0.5) ? DataType::float32 : DataType::float64, gradient};
  row.out_weights = DataType::float64;
  row.out_values = DataType::float32;
  const GradientFloats expected = gradient_on_cpu(row, starts);
  const GradientOnDevice device(row, starts);
  ASSERT_TRUE(device.enqueue());
  EXPECT_TRUE(device.out_values.host().bytes == expected.values.bytes);
  EXPECT_TRUE(device.out_weights.host().bytes == expected.weights.bytes);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Gradients, testing::Range<std::uint64_t>(0, 4));

}  // namespace
}  // namespace isofold_test
