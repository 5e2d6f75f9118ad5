// Small problems with answers known by hand, most of them once answered wrongly by some solver.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "support/fit_call.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;
using Numbers = std::vector<double>;
using Places = std::vector<std::int64_t>;

class KnownAnswers : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { call_.executor.backend = GetParam(); }

  Numbers fit(const Numbers& values, bool increasing = true) {
    call_.values = values;
    call_.increasing = increasing;
    answer_ = run_fit(call_);
    EXPECT_TRUE(answer_.status.ok()) << answer_.status.message;
    return answer_.fit(call_.chosen_fit_type());
  }
  GradientAnswer gradient(const Numbers& incoming) {
    GradientAnswer gradients = run_gradient(call_, answer_.starts, GradientCall{incoming});
    EXPECT_TRUE(gradients.status.ok()) << gradients.status.message;
    return gradients;
  }
  static Numbers float64s(const std::vector<std::uint64_t>& bits) {
    Numbers numbers;
    for (const std::uint64_t b : bits) numbers.push_back(decode(DataType::float64, b));
    return numbers;
  }

  FitCall call_;
  FitAnswer answer_;
};

TEST_P(KnownAnswers, ConstantsComeBackAsTheyAre) {
  EXPECT_EQ(fit({.1, .1, .1}), (Numbers{.1, .1, .1}));
  EXPECT_EQ(answer_.blocks(), Places{0});
  call_.values_type = DataType::float32;
  const auto tenth = static_cast<double>(0.1F);
  for (const std::size_t length : {std::size_t{3}, std::size_t{1000}, std::size_t{1000003}}) {
    EXPECT_EQ(fit(Numbers(length, tenth)), Numbers(length, tenth));
    EXPECT_EQ(answer_.blocks(), Places{0});
  }
}

TEST_P(KnownAnswers, DifferencesOfAnySizeKeepBlocksApart) {
  EXPECT_EQ(fit({3e-10, 2e-10, 1e-10}, false), (Numbers{3e-10, 2e-10, 1e-10}));
  EXPECT_EQ(answer_.blocks(), (Places{0, 1, 2}));
  EXPECT_EQ(float64s(gradient({1, 2, 3}).values), (Numbers{1, 2, 3}));
}

TEST_P(KnownAnswers, DerivativeOfAPooledPair) {
  fit({4, .7, 2}, false);
  EXPECT_EQ(answer_.blocks(), (Places{0, 1}));
  EXPECT_EQ(float64s(gradient({0, 1, 0}).values), (Numbers{0, .5, .5}));
}

TEST_P(KnownAnswers, TheScipyExample) {
  EXPECT_EQ(fit({1.5, 1, 4, 6, 5.7, 5, 7.8, 9, 7.5, 9.5, 9}),
            (Numbers{1.25, 1.25, 4, 16.7 / 3, 16.7 / 3, 16.7 / 3, 7.8, 8.25, 8.25, 9.25, 9.25}));
  EXPECT_EQ(answer_.blocks(), (Places{0, 2, 3, 6, 7, 9}));
}

TEST_P(KnownAnswers, SumsThatOverflowMidway) {
  EXPECT_EQ(fit({1e308, 1e308, -1e308, -1e308}), Numbers(4, 0.0));
  for (const std::uint64_t bits : answer_.bits) EXPECT_EQ(bits, 0U) << "a zero is +0.0";
  EXPECT_EQ(fit({1.7e308, 1.6e308}), Numbers(2, 1.7e308 / 2 + 1.6e308 / 2));  // halves are exact
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(fit(Numbers(1000, most)), Numbers(1000, most));
  call_.weights = Numbers(1000, most);
  EXPECT_EQ(fit(Numbers(1000, -most)), Numbers(1000, -most));
  EXPECT_TRUE(std::isinf(gradient(Numbers(1000, 0.0)).block_weights.at(0)));  // 1000 max rounds to infinity
}

TEST_P(KnownAnswers, SumsThatUnderflowMidway) {
  const double least = std::numeric_limits<double>::denorm_min();
  call_.weights = {least, least, least};
  EXPECT_EQ(fit({3 * least, 2 * least, least}), Numbers(3, 2 * least));
  EXPECT_EQ(gradient({1, 1, 1}).block_weights, Numbers{3 * least});
  call_.weights = {least, 2 * least};
  EXPECT_EQ(fit({4.0, 1.0}), Numbers(2, 2.0));
}

TEST_P(KnownAnswers, ZerosArePositive) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    call_.values_type = type;
    EXPECT_EQ(fit({-0.0, 0.0, -0.0}), Numbers(3, 0.0));
    EXPECT_EQ(answer_.blocks(), Places{0});
    for (const std::uint64_t bits : answer_.bits) EXPECT_EQ(bits, 0U) << name_of(type);
    fit({-0.0, 1.0}, true);
    EXPECT_EQ(answer_.bits[0], 0U) << name_of(type);
    fit({-0.0}, false);
    EXPECT_EQ(answer_.bits[0], 0U) << name_of(type);
  }
  call_.lower_bound = call_.upper_bound = -0.0;  // a clipped zero too
  fit({-1.0, 1.0});
  EXPECT_EQ(answer_.bits, (std::vector<std::uint64_t>{0, 0}));
}

TEST_P(KnownAnswers, FallingRowWithOddIndicesLowered) {
  for (const std::int64_t n : {800, 20000}) {
    Numbers values;
    for (std::int64_t i = 0; i < n; ++i)
      values.push_back(static_cast<double>(n - i) - (i % 2 != 0 ? 1.5 : 0.0));
    // The mean of n..1 less 0.75.
    EXPECT_EQ(fit(values), Numbers(values.size(), static_cast<double>(n + 1) / 2 - 0.75));
  }
}

TEST_P(KnownAnswers, RisesThatEndFarBelow) {
  for (const std::int64_t n : {5, 1000, 20000}) {
    Numbers values(static_cast<std::size_t>(n));
    std::iota(values.begin(), values.end(), 0.0);
    for (std::int64_t k = -(n - 1); k < n; ++k) values.push_back(static_cast<double>(k));
    for (std::int64_t k = -(n - 1); k < 1; ++k) values.push_back(static_cast<double>(k));
    EXPECT_EQ(fit(values), Numbers(values.size(), 0.0));
    EXPECT_EQ(answer_.blocks(), Places{0});
  }
}

TEST_P(KnownAnswers, FiveTimesOneValue) {
  const Numbers z = fit({.52, .58, -1.91, -1.12, -1.04});
  for (const double x : z) EXPECT_NEAR(x, -.594, 1e-15);
  EXPECT_EQ(z, Numbers(5, z[0]));
}

TEST_P(KnownAnswers, TiedScoresShareOneValue) {
  call_.tie_offsets = {0, 1, 3, 4, 5};  // scores 0, 1 1, 2, 3
  EXPECT_EQ(fit({0, 0, 1, 0, 1}), (Numbers{0, 1. / 3, 1. / 3, 1. / 3, 1}));
  call_.tie_offsets = {0, 2, 4, 5};
  EXPECT_EQ(fit({4, 4, 5, 5, 3}, false), (Numbers{4.5, 4.5, 4.5, 4.5, 3}));
  EXPECT_EQ(answer_.blocks(), (Places{0, 4}));
  call_.tie_offsets = {0, 4};
  EXPECT_EQ(fit({0, 1, 2, 3}), Numbers(4, 1.5));
  EXPECT_EQ(answer_.blocks(), Places{0});
}

TEST_P(KnownAnswers, OneGroupIsOneBlockInAnyOrder) {
  call_.values_type = DataType::float32;
  call_.tie_offsets = {0, 3, 5};
  const Numbers once = fit({1, 2, 6, 5, 4});
  EXPECT_EQ(once, (Numbers{3, 3, 3, 4.5, 4.5}));
  EXPECT_EQ(fit({6, 1, 2, 4, 5}), once);
  EXPECT_EQ(fit({2, 6, 1, 5, 4}), once);
}

TEST_P(KnownAnswers, BlocksAreMaximal) {
  EXPECT_EQ(fit({2, 1, 1.5, 1.5}), Numbers(4, 1.5));  // equal means, never a violation between them
  EXPECT_EQ(answer_.blocks(), Places{0});
  // Means that differ in the last place only, and round to one float32, stay apart.
  call_.values_type = DataType::float64;
  call_.fit_type = DataType::float32;
  EXPECT_EQ(fit({1.0, 1.0 + 0x1p-52}), Numbers(2, 1.0));
  EXPECT_EQ(answer_.blocks(), (Places{0, 1}));
}

TEST_P(KnownAnswers, MidpointsGoToTheEvenNeighbour) {
  const double u = 0x1p-52;
  EXPECT_EQ(fit({1 + u, 1}), Numbers(2, 1.0));
  EXPECT_EQ(fit({1 + 2 * u, 1 + u}), Numbers(2, 1 + 2 * u));
  EXPECT_EQ(fit({2 + 2 * u, 2, 0x1p-1074, -0x1p-1074}), Numbers(4, 1.0));
  EXPECT_EQ(fit({2 + 2 * u, 2, 0x1p-1074, 0}), Numbers(4, 1 + u));  // a hair above the midpoint
  EXPECT_EQ(fit({2 + 2 * u, 2, 0, -0x1p-1074}), Numbers(4, 1.0));
}

TEST_P(KnownAnswers, BoundsClipTheFitAndNotTheBlocks) {
  call_.lower_bound = 0.25;
  call_.upper_bound = 0.75;
  EXPECT_EQ(fit({0, 1, .5, 2, 1}), (Numbers{.25, .75, .75, .75, .75}));
  EXPECT_EQ(answer_.blocks(), (Places{0, 1, 3}));
  // 0.75 is the exact mean of the middle block: at a bound the gradient passes, outside it does not.
  EXPECT_EQ(float64s(gradient({1, 1, 3, 1, 1}).values), (Numbers{0, 2, 2, 0, 0}));
}

TEST_P(KnownAnswers, BoundsAreRoundedToTheType) {
  call_.values_type = DataType::float16;
  call_.lower_bound = 0.1;
  EXPECT_EQ(fit({0, 1}), (Numbers{decode(DataType::float16, encode(DataType::float16, 0.1)), 1}));
}

TEST_P(KnownAnswers, WeightGradient) {
  call_.weights = {1, 3};
  fit({4, 0});  // S / W = 1, G / W = 2
  const GradientAnswer g = gradient({6, 2});
  EXPECT_EQ(float64s(g.values), (Numbers{2, 6}));
  EXPECT_EQ(float64s(g.weights), (Numbers{6, -2}));
  call_.weights = {1, 3};
  fit({5, 5});  // one value: no derivative in the weights
  EXPECT_EQ(float64s(gradient({6, 2}).weights), (Numbers{0, 0}));
}

TEST_P(KnownAnswers, ABlockWithANonFiniteGradientIsNaN) {
  fit({2, 1, 3, 4});
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    const GradientAnswer g = gradient({bad, 1, 1, -1});
    const std::uint64_t nan = canonical_nan(DataType::float64);
    EXPECT_EQ(g.values, (std::vector<std::uint64_t>{nan, nan, spell(DataType::float64, 1),
                                                    spell(DataType::float64, -1)}));
    EXPECT_EQ(g.weights, (std::vector<std::uint64_t>{nan, nan, 0, 0}));
  }
}

TEST_P(KnownAnswers, MixedTypes) {
  call_.values_type = DataType::bfloat16;
  call_.weights_type = DataType::float64;
  call_.fit_type = DataType::float64;
  call_.weights = {1, 1e-3};
  const double mean = (2.0 + 1e-3) / (1.0 + 1e-3);
  EXPECT_NEAR(fit({2, 1})[0], mean, 1e-15);
  call_.fit_type = DataType::float16;
  EXPECT_EQ(fit({0x1p20, 0})[0], std::numeric_limits<double>::infinity());  // past float16, as any conversion
}

INSTANTIATE_TEST_SUITE_P(Executors, KnownAnswers, testing::Values(Backend::cpu, Backend::reference));

}  // namespace
}  // namespace isofold_test
