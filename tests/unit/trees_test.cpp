// Histograms and best splits through the C++ interface: known answers, what the caller's state may be,
// faults.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "algorithm/gradient_grid.hpp"
#include "algorithm/split_scan.hpp"
#include "isofold/isofold.hpp"
#include "support/random.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace isofold_test {
namespace {

using isofold::Backend;
using isofold::BinMatrix;
using isofold::BinType;
using isofold::Executor;
using isofold::GradientGrid;
using isofold::GradientProblem;
using isofold::HistogramArrays;
using isofold::HistogramProblem;
using isofold::QuantizedGradient;
using isofold::Split;
using isofold::SplitProblem;
using isofold::Status;
using isofold::StatusCode;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Sums {
  std::vector<std::int64_t> gradients;
  std::vector<std::int64_t> hessians;
  std::vector<std::int32_t> counts;

  explicit Sums(std::size_t entries) : gradients(entries), hessians(entries), counts(entries) {}
  HistogramArrays arrays() { return {gradients.data(), hessians.data(), counts.data()}; }
};

class Trees : public testing::Test {
 protected:
  // Ten features of 40 bins; gradients and hessians of all sizes.
  void SetUp() override {
    Random random(3);
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (int f = 0; f < kFeatures; ++f) bins_.push_back(static_cast<std::uint8_t>(random.below(kBins)));
      gradients_.push_back(random.normal() * std::pow(10.0, 8 * random.unit() - 4));
      hessians_.push_back(random.unit());
    }
  }

  [[nodiscard]] GradientProblem gradient_problem() const {
    GradientProblem problem;
    problem.gradients = gradients_.data();
    problem.hessians = hessians_.data();
    problem.rows = kRows;
    return problem;
  }
  [[nodiscard]] HistogramProblem histogram_problem(const std::vector<QuantizedGradient>& quantized) const {
    HistogramProblem problem;
    problem.bins = BinMatrix::row_major(bins_.data(), BinType::uint8, kRows, kFeatures);
    problem.gradients = quantized.data();
    problem.bin_count = kBins;
    return problem;
  }
  Split best(const Executor& executor) {
    std::vector<QuantizedGradient> quantized(kRows);
    Sums sums(kFeatures * kBins);
    GradientGrid grid;
    EXPECT_TRUE(
        isofold::quantize_gradients(gradient_problem(), nullptr, quantized.data(), &grid, executor).ok());
    EXPECT_TRUE(isofold::histogram(histogram_problem(quantized), sums.arrays(), executor).ok());
    SplitProblem problem;
    problem.histogram = sums.arrays();
    problem.grid = grid;
    problem.nodes = 1;
    problem.features = kFeatures;
    problem.bin_count = kBins;
    Split split;
    EXPECT_TRUE(isofold::best_splits(problem, &split, nullptr, executor).ok());
    return split;
  }

  static constexpr std::int64_t kRows = 5000;
  static constexpr int kFeatures = 10;
  static constexpr int kBins = 40;
  std::vector<std::uint8_t> bins_;
  std::vector<double> gradients_;
  std::vector<double> hessians_;
};

TEST(GradientGrids, AreThePowersOfTwoThatTheCommentSays) {
  for (const double largest : {1.0, 1.5, 1.9999999, 0x1p-1074, 0x1p-1030, 0x1p1023, 3e-5}) {
    const int exponent = isofold::grid_exponent(largest, isofold::kGradientBits);
    if (exponent == -1074) continue;  // there is no smaller unit
    const double units = std::ldexp(largest, -exponent);
    EXPECT_GE(units, 0x1p28);
    EXPECT_LT(units, 0x1p29);
  }
  EXPECT_EQ(isofold::grid_exponent(0.0, isofold::kHessianBits),
            isofold::grid_exponent(1.0, isofold::kHessianBits));
}

TEST(GradientGrids, RoundToNearestTiesToEven) {
  const isofold::Quantizer quantizer(GradientGrid{0, 0, 0});
  EXPECT_EQ(quantizer(2.5, 2.5).gradient, 2);
  EXPECT_EQ(quantizer(3.5, 3.5).hessian, 4);
  EXPECT_EQ(quantizer(-2.5, 0).gradient, -2);
  EXPECT_EQ(quantizer(-3.5, 0).gradient, -4);
  EXPECT_EQ(quantizer(0, 0.1).hessian, 1);  // never zero
  EXPECT_EQ(quantizer(0, 0).hessian, 0);
  EXPECT_FALSE(quantizer.holds(0x1p30, 0));
  EXPECT_FALSE(quantizer.holds(kNaN, 0));
  EXPECT_FALSE(quantizer.holds(0, -1));
}

TEST_F(Trees, DoNotDependOnThreadsOrTheCallersFloatingPointMode) {
  Executor one;
  one.threads = 1;
  const Split expected = best(one);
  EXPECT_GE(expected.feature, 0);
  Executor four;
  four.threads = 4;
  const Split threaded = best(four);
  EXPECT_EQ(std::memcmp(&expected, &threaded, sizeof expected), 0);
#if defined(__x86_64__)
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040 | 0x6000);  // flush to zero, subnormals are zero, towards zero
  const Split flushed = best(one);
  _mm_setcsr(mode);
  EXPECT_EQ(std::memcmp(&expected, &flushed, sizeof expected), 0);
#endif
}

TEST_F(Trees, SubtractInPlace) {
  std::vector<QuantizedGradient> quantized(kRows);
  ASSERT_TRUE(isofold::quantize_gradients(gradient_problem(), nullptr, quantized.data(), nullptr).ok());
  std::vector<std::int64_t> left;
  std::vector<std::int64_t> right;
  for (std::int64_t i = 0; i < kRows; ++i)
    (bins_[static_cast<std::size_t>(i * kFeatures)] < 9 ? left : right).push_back(i);
  Sums all(kFeatures * kBins);
  Sums some(kFeatures * kBins);
  Sums rest(kFeatures * kBins);
  HistogramProblem problem = histogram_problem(quantized);
  ASSERT_TRUE(isofold::histogram(problem, all.arrays()).ok());
  problem.row_subset = left.data();
  problem.subset_rows = static_cast<std::int64_t>(left.size());
  ASSERT_TRUE(isofold::histogram(problem, some.arrays()).ok());
  problem.row_subset = right.data();
  problem.subset_rows = static_cast<std::int64_t>(right.size());
  ASSERT_TRUE(isofold::histogram(problem, rest.arrays()).ok());
  ASSERT_TRUE(isofold::subtract_histogram(all.arrays(), some.arrays(), kFeatures * kBins, all.arrays()).ok());
  EXPECT_EQ(all.gradients, rest.gradients);
  EXPECT_EQ(all.hessians, rest.hessians);
  EXPECT_EQ(all.counts, rest.counts);
  const Status status =
      isofold::subtract_histogram(all.arrays(), some.arrays(), kFeatures * kBins, rest.arrays());
  EXPECT_EQ(status.code, StatusCode::invalid_argument);
  EXPECT_NE(status.message.find("child"), std::string::npos) << status.message;
}

TEST_F(Trees, NameTheFirstFault) {
  std::vector<QuantizedGradient> quantized(kRows);
  gradients_[4000] = kNaN;
  gradients_[4500] = kNaN;
  Status status = isofold::quantize_gradients(gradient_problem(), nullptr, quantized.data(), nullptr);
  EXPECT_EQ(status.code, StatusCode::not_finite);
  EXPECT_EQ(status.position, 4000);
  gradients_[4000] = gradients_[4500] = 0;
  hessians_[17] = -1;
  status = isofold::quantize_gradients(gradient_problem(), nullptr, quantized.data(), nullptr);
  EXPECT_EQ(status.code, StatusCode::invalid_argument);
  EXPECT_EQ(status.position, 17);
  bins_[static_cast<std::size_t>(123 * kFeatures + 4)] = kBins;
  Sums sums(kFeatures * kBins);
  status = isofold::histogram(histogram_problem(quantized), sums.arrays());
  EXPECT_EQ(status.code, StatusCode::invalid_argument);
  EXPECT_NE(status.message.find("bins: row 123, feature 4 is 40"), std::string::npos) << status.message;
}

TEST_F(Trees, RefuseWhatTheyCannotServe) {
  std::vector<QuantizedGradient> quantized(kRows);
  Sums sums(kFeatures * kBins);
  Executor reference;
  reference.backend = Backend::reference;
  EXPECT_EQ(isofold::histogram(histogram_problem(quantized), sums.arrays(), reference).code,
            StatusCode::unsupported);
  HistogramProblem problem = histogram_problem(quantized);
  problem.bin_count = 257;
  EXPECT_EQ(isofold::histogram(problem, sums.arrays()).code, StatusCode::invalid_argument);
  SplitProblem splits;
  splits.histogram = sums.arrays();
  splits.nodes = 1;
  splits.features = kFeatures;
  splits.bin_count = kBins;
  splits.rules.lambda_l2 = kNaN;
  Split split;
  const Status status = isofold::best_splits(splits, &split);
  EXPECT_EQ(status.code, StatusCode::invalid_argument);
  EXPECT_NE(status.message.find("lambda_l2"), std::string::npos) << status.message;
  Executor stopped;
  stopped.should_stop = [](void*) { return true; };
  EXPECT_EQ(isofold::histogram(histogram_problem(quantized), sums.arrays(), stopped).code,
            StatusCode::interrupted);
}

// Any tree of comparisons over the candidates of a feature has the same root.
TEST(CandidateOrder, IsTotal) {
  Random random(5);
  for (const isofold::TiePolicy ties : {isofold::TiePolicy::lowest, isofold::TiePolicy::highest,
                                        isofold::TiePolicy::middle, isofold::TiePolicy::lightgbm}) {
    for (int round = 0; round < 200; ++round) {
      std::vector<isofold::Candidate> candidates;
      for (std::int32_t direction : {0, 1}) {
        for (std::int32_t bin = 0; bin < 12; ++bin) {
          candidates.push_back({static_cast<double>(random.below(3)), direction, bin});
        }
      }
      isofold::Candidate scanned = candidates[0];
      for (const isofold::Candidate& candidate : candidates) {
        if (isofold::comes_before(candidate, scanned, ties, isofold::ScanKind::numerical))
          scanned = candidate;
      }
      while (candidates.size() > 1) {
        const auto take = [&] {
          const std::int64_t at = random.below(static_cast<std::int64_t>(candidates.size()));
          const isofold::Candidate taken = candidates[static_cast<std::size_t>(at)];
          candidates.erase(candidates.begin() + at);
          return taken;
        };
        const isofold::Candidate a = take();
        const isofold::Candidate b = take();
        const bool first = isofold::comes_before(a, b, ties, isofold::ScanKind::numerical);
        ASSERT_NE(first, isofold::comes_before(b, a, ties, isofold::ScanKind::numerical));
        candidates.push_back(first ? a : b);
      }
      EXPECT_EQ(candidates[0].direction, scanned.direction);
      EXPECT_EQ(candidates[0].bin, scanned.bin);
    }
  }
}

}  // namespace
}  // namespace isofold_test
