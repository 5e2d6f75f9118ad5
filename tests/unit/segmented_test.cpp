// Sums, dots and norms of segments: stored cases, special values, arguments, and the exact types underneath.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "exact/compensated_sum.hpp"
#include "exact/digit_accumulator.hpp"
#include "exact/rounded_number.hpp"
#include "isofold/isofold.hpp"
#include "support/case_file.hpp"
#include "support/exact_conversions.hpp"
#include "support/random.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;
using isofold::Rows;
using isofold::SegmentReduction;
using isofold::SegmentValue;
using isofold::StatusCode;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

class Segments : public testing::TestWithParam<Backend> {
 protected:
  Segments() { executor_.backend = GetParam(); }

  double sum(const std::vector<double>& a) {
    double out = -1;
    const auto status =
        segment_sum(a.data(), Rows::single(static_cast<std::int64_t>(a.size())), &out, executor_);
    EXPECT_TRUE(status.ok()) << status.message;
    return out;
  }
  double dot(const std::vector<double>& a, const std::vector<double>& b) {
    double out = -1;
    const auto status =
        segment_dot(a.data(), b.data(), Rows::single(static_cast<std::int64_t>(a.size())), &out, executor_);
    EXPECT_TRUE(status.ok()) << status.message;
    return out;
  }
  double norm(const std::vector<double>& a) {
    double out = -1;
    const auto status =
        segment_norm(a.data(), Rows::single(static_cast<std::int64_t>(a.size())), &out, executor_);
    EXPECT_TRUE(status.ok()) << status.message;
    return out;
  }

  isofold::Executor executor_;
};

TEST_P(Segments, AgreeWithTheStoredCases) {
  const std::vector<DotCase> cases = read_dot_cases(ISOFOLD_TEST_DATA "/dot_cases.json");
  ASSERT_EQ(cases.size(), 20U);
  for (const DotCase& c : cases) {
    const auto rows = Rows::ragged(c.offsets.data(), static_cast<std::int64_t>(c.offsets.size()) - 1);
    const auto run = [&](auto zero) {
      using T = decltype(zero);
      const std::vector<T> a(c.a.begin(), c.a.end());
      const std::vector<T> b(c.b.begin(), c.b.end());
      std::vector<T> out(c.dot.size());
      ASSERT_TRUE(segment_dot(a.data(), b.data(), rows, out.data(), executor_).ok()) << c.name;
      EXPECT_EQ(std::vector<double>(out.begin(), out.end()), c.dot) << c.name;
    };
    if (c.type == DataType::float32) run(0.0F);
    if (c.type == DataType::float64) run(0.0);
  }
}

TEST_P(Segments, OfNothingAreZero) {
  EXPECT_EQ(sum({}), 0.0);
  EXPECT_FALSE(std::signbit(sum({})));
  EXPECT_FALSE(std::signbit(norm({})));
  EXPECT_FALSE(std::signbit(sum({-0.0, -0.0})));
  EXPECT_FALSE(std::signbit(dot({-0.0}, {1.0})));
  EXPECT_FALSE(std::signbit(norm({-0.0})));
  const std::int64_t offsets[] = {0, 0, 2, 2, 2, 3, 3};
  const float a[] = {1, 2, 4};
  float out[6] = {9, 9, 9, 9, 9, 9};
  ASSERT_TRUE(segment_sum(a, Rows::ragged(offsets, 6), out, executor_).ok());
  EXPECT_EQ(std::vector<float>(out, out + 6), (std::vector<float>{0, 3, 0, 0, 4, 0}));
  const std::int64_t empty[] = {0, 0, 0};
  ASSERT_TRUE(segment_sum(a, Rows::ragged(empty, 2), out, executor_).ok());
  EXPECT_EQ(out[0], 0);
  EXPECT_EQ(out[1], 0);
}

TEST_P(Segments, OfSpecialValuesAreThoseOfIeee) {
  EXPECT_EQ(sum({1, kInfinity}), kInfinity);
  EXPECT_EQ(sum({-kInfinity, 1e308, 1e308}), -kInfinity);
  EXPECT_TRUE(std::isnan(sum({kInfinity, -kInfinity})));
  EXPECT_TRUE(std::isnan(sum({kNaN, kInfinity})));
  EXPECT_TRUE(std::isnan(dot({0.0, 1}, {kInfinity, 1})));
  EXPECT_EQ(dot({-2.0, 1}, {kInfinity, 1}), -kInfinity);
  EXPECT_EQ(norm({-kInfinity, 1}), kInfinity);
  EXPECT_TRUE(std::isnan(norm({-kInfinity, kNaN})));
  EXPECT_FALSE(std::signbit(sum({-kNaN})));
}

TEST_P(Segments, NeitherOverflowNorUnderflowMidway) {
  EXPECT_EQ(sum({1e308, 1e308, -1e308}), 1e308);
  EXPECT_EQ(sum({1e308, 1e308}), kInfinity);
  EXPECT_EQ(dot({1e200, 1e200, 3}, {1e200, -1e200, 1}), 3.0);
  EXPECT_EQ(norm({0x3p700, 0x4p700}), 0x5p700);
  EXPECT_EQ(norm({0x3p-700, 0x4p-700}), 0x5p-700);
  EXPECT_EQ(norm({0x1p-1074}), 0x1p-1074);
  EXPECT_EQ(norm({std::numeric_limits<double>::max()}), std::numeric_limits<double>::max());
  EXPECT_EQ(dot({0x1p-600, 0x1p-600}, {0x1p-474, 0x1p-474}), 0x1p-1073);
  // Half of the smallest subnormal rounds to even, a bit more rounds up.
  EXPECT_EQ(dot({0x1p-600}, {0x1p-475}), 0.0);
  EXPECT_EQ(dot({0x1p-600, 0x1p-600}, {0x1p-475, 0x1p-700}), 0x1p-1074);
}

TEST_P(Segments, RoundOnceToTheOutputsType) {
  // 1 + 2^-24 is a midpoint of floats, and a bit more is not, whatever float64 can tell of it.
  const double a[] = {1.0, 0x1p-24, 0x1p-90};
  float out = 0;
  ASSERT_TRUE(segment_sum(a, Rows::single(2), &out, executor_).ok());
  EXPECT_EQ(out, 1.0F);
  ASSERT_TRUE(segment_sum(a, Rows::single(3), &out, executor_).ok());
  EXPECT_EQ(out, 1.0F + 0x1p-23F);
  isofold::Float16 half{};
  const double b[] = {2048, 1, 0x1p-80};
  ASSERT_TRUE(segment_sum(b, Rows::single(3), &half, executor_).ok());
  EXPECT_EQ(decode(DataType::float16, half.bits), 2050);
  ASSERT_TRUE(segment_sum(b, Rows::single(2), &half, executor_).ok());
  EXPECT_EQ(decode(DataType::float16, half.bits), 2048);
  const double c[] = {65520.0};
  ASSERT_TRUE(segment_sum(c, Rows::single(1), &half, executor_).ok());
  EXPECT_EQ(decode(DataType::float16, half.bits), kInfinity);
}

TEST_P(Segments, OfMixedTypes) {
  const float a[] = {1.5F, 2.0F};
  const double b[] = {0.1, 0.2};
  double out = 0;
  ASSERT_TRUE(segment_dot(a, b, Rows::single(2), &out, executor_).ok());
  EXPECT_EQ(out, 0.55);
  const isofold::BFloat16 c[] = {{0x3F80}, {0xC000}};  // 1, -2
  ASSERT_TRUE(segment_dot(c, b, Rows::single(2), &out, executor_).ok());
  EXPECT_EQ(out, 0.1 - 2 * 0.2);
}

INSTANTIATE_TEST_SUITE_P(Executors, Segments, testing::Values(Backend::cpu, Backend::reference),
                         [](const auto& p) { return p.param == Backend::cpu ? "cpu" : "reference"; });

TEST(SegmentArguments, AreNamed) {
  const double a[] = {1, 2, 3};
  double out[3];
  const auto message = [](const isofold::Status& status) { return status.message; };
  EXPECT_EQ(message(segment_dot(a, {}, Rows::single(3), out)), "b: no array given");
  EXPECT_EQ(message(segment_sum({}, Rows::single(3), out)), "a: no array given");
  EXPECT_EQ(message(segment_sum(a, Rows::single(3), {})), "out: no array given");
  EXPECT_EQ(message(segment_sum(a, Rows::rectangle(-1, 3), out)), "rows: the number of rows is negative: -1");
  const std::int64_t falling[] = {0, 2, 1};
  const isofold::Status status = segment_sum(a, Rows::ragged(falling, 2), out);
  EXPECT_EQ(status.code, StatusCode::bad_offsets);
  EXPECT_EQ(status.message, "offsets must not fall: position 2 is 1 after 2");
  EXPECT_EQ(status.position, 2);
  SegmentReduction two[2] = {{SegmentValue::sum, a, {}, out}, {SegmentValue::norm, a, a, out}};
  EXPECT_EQ(message(segment_reductions(two, 2, Rows::single(3))),
            "reduction 1, b: only a dot product has a second array");
  EXPECT_EQ(message(segment_reductions(two, 17, Rows::single(3))), "count must be from 0 to 16: 17");
  isofold::Executor executor;
  executor.threads = -1;
  EXPECT_EQ(message(segment_sum(a, Rows::single(3), out, executor)), "threads must not be negative: -1");
}

TEST(SegmentArguments, ACallMayBeStopped) {
  isofold::Executor executor;
  executor.should_stop = [](void*) { return true; };
  const double a[] = {1, 2, 3};
  double out = 0;
  EXPECT_EQ(segment_sum(a, Rows::single(3), &out, executor).code, StatusCode::interrupted);
}

TEST(CompensatedSums, AreWithinTheirError) {
  Random random(5);
  for (int trial = 0; trial < 2000; ++trial) {
    isofold::CompensatedSum sum;
    mpq_class exact;
    const int count = static_cast<int>(random.between(0, 40));
    for (int i = 0; i < count; ++i) {
      const double term =
          random.sign() * std::ldexp(random.unit(), static_cast<int>(random.between(-60, 60)));
      sum = sum + term;
      exact += fraction(term);
    }
    const mpq_class off = abs(exact - fraction(sum.high) - fraction(sum.low));
    ASSERT_LE(off, fraction(sum.error));
    if (count <= 2) {
      ASSERT_EQ(sum.error, 0.0);
    }
    const isofold::RoundedValue rounded = round_compensated(sum, isofold::kFloat64);
    if (rounded.decided) {
      ASSERT_LE(abs(exact - fraction(rounded.value)), abs(exact) * mpq_class(1, 1L << 53));
    }
  }
}

// Roots as near to a midpoint of two doubles as pairs can tell: left open, or right.
TEST(CompensatedSums, HaveRootsNextToMidpoints) {
  Random random(7);
  int decided = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const double root = std::ldexp(1 + random.unit(), static_cast<int>(random.between(0, 1)));
    const double next = std::nextafter(root, 9.0);
    const mpq_class midpoint = (fraction(root) + fraction(next)) / 2;
    const mpq_class square = midpoint * midpoint;
    const double high = square.get_d();
    const mpq_class rest = square - fraction(high);
    const double low = rest.get_d() * (1 + 0x1p-50 * static_cast<double>(random.between(-3, 3)));
    const isofold::RoundedValue found = round_root({high, low, 0.0}, isofold::kFloat64);
    if (!found.decided) continue;
    ++decided;
    ASSERT_EQ(found.value, fraction(high) + fraction(low) > square ? next : root);
  }
  EXPECT_LT(decided, 20000);
}

TEST(DigitAccumulators, HoldTheExactSum) {
  Random random(6);
  for (int trial = 0; trial < 300; ++trial) {
    isofold::DigitAccumulator digits[2];
    mpq_class exact;
    for (int i = 0; i < 30; ++i) {
      const double a =
          random.sign() * std::ldexp(1 + random.unit(), static_cast<int>(random.between(-1080, 1023)));
      const double b =
          random.sign() * std::ldexp(1 + random.unit(), static_cast<int>(random.between(-1080, 1023)));
      digits[random.below(2)].add_product(a, b);
      exact += fraction(a) * fraction(b);
    }
    digits[0] += digits[1];
    ASSERT_EQ(fraction(digits[0].value()), exact);
  }
}

}  // namespace
}  // namespace isofold_test
