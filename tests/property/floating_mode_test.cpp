// The caller's floating-point mode: it changes no bit, and it is the same afterwards.
#include <gtest/gtest.h>

#include <cfenv>

#include "isofold/interpolation.hpp"
#include "support/long_row.hpp"

#if defined(__x86_64__)
#include <xmmintrin.h>

namespace isofold_test {
namespace {

constexpr unsigned kFlushToZero = 0x8000;
constexpr unsigned kDenormalsAreZero = 0x0040;
constexpr unsigned kRoundingShift = 13;  // bits 13 and 14: nearest, down, up, toward zero
constexpr unsigned kStatusFlags = 0x3f;

class ModeRestorer {
 public:
  ModeRestorer() : saved_(_mm_getcsr()) {}
  ~ModeRestorer() { _mm_setcsr(saved_); }
  ModeRestorer(const ModeRestorer&) = delete;
  ModeRestorer& operator=(const ModeRestorer&) = delete;

 private:
  unsigned saved_;
};

// Calls on buffers that were prepared in the ordinary mode; the test's own arithmetic must not see the mode.
struct Prepared {
  explicit Prepared(const LongRow& row)
      : values(row.call.values_type, row.call.values, row.call.layout),
        weights(row.call.weights.empty() ? DataType::none : row.call.weights_type, row.call.weights,
                row.call.layout),
        gradient(row.call.values_type, row.gradient.gradient, row.call.layout),
        executor(row.call.executor) {
    const auto n = static_cast<std::int64_t>(row.call.values.size());
    problem.values = values.input();
    problem.weights = weights.input();
    problem.rows = isofold::Rows::single(n);
    problem.increasing = row.call.increasing;
    fit = GuardedArray(row.call.values_type, n, row.call.layout);
    gradient_values = GuardedArray(row.call.values_type, n, row.call.layout);
    gradient_weights = GuardedArray(DataType::float64, n, row.call.layout);
    starts.assign(row.call.values.size(), 0);
    block_weights.assign(row.call.values.size(), 0.0);
  }

  // Everything the library computes, as bytes.
  std::vector<unsigned char> results() const {
    std::vector<unsigned char> bytes = fit.snapshot();
    for (const GuardedArray* array : {&gradient_values, &gradient_weights}) {
      const std::vector<unsigned char> more = array->snapshot();
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    bytes.insert(bytes.end(), starts.begin(), starts.end());
    const auto* sums = reinterpret_cast<const unsigned char*>(block_weights.data());
    bytes.insert(bytes.end(), sums, sums + block_weights.size() * sizeof(double));
    return bytes;
  }

  void run(unsigned mode) {
    _mm_setcsr(mode);
    const bool ok = isofold::isotonic_regression(problem, {fit.output(), starts.data()}, executor).ok();
    const unsigned after_fit = _mm_getcsr();
    const bool gradient_ok =
        isofold::isotonic_gradient(problem, starts.data(), gradient.input(),
                                   {gradient_values.output(), gradient_weights.output()}, executor)
            .ok();
    const unsigned after_gradient = _mm_getcsr();
    const bool weights_ok =
        isofold::block_weights(problem, starts.data(), block_weights.data(), executor).ok();
    const unsigned after_weights = _mm_getcsr();
    _mm_setcsr(mode & ~(kFlushToZero | kDenormalsAreZero | 3U << kRoundingShift));
    EXPECT_TRUE(ok && gradient_ok && weights_ok);
    EXPECT_EQ(after_fit & ~kStatusFlags, mode & ~kStatusFlags);
    EXPECT_EQ(after_gradient & ~kStatusFlags, mode & ~kStatusFlags);
    EXPECT_EQ(after_weights & ~kStatusFlags, mode & ~kStatusFlags);
  }

  GuardedArray values, weights, gradient;
  GuardedArray fit, gradient_values, gradient_weights;
  std::vector<std::uint8_t> starts;
  std::vector<double> block_weights;
  isofold::IsotonicProblem problem;
  isofold::Executor executor;
};

std::vector<unsigned> modes(unsigned plain) {
  std::vector<unsigned> all = {plain | kFlushToZero, plain | kDenormalsAreZero,
                               plain | kFlushToZero | kDenormalsAreZero};
  for (unsigned rounding = 1; rounding < 4; ++rounding) {
    all.push_back(plain | rounding << kRoundingShift);
    all.push_back(plain | rounding << kRoundingShift | kFlushToZero | kDenormalsAreZero);
  }
  return all;
}

class FloatingMode : public testing::TestWithParam<isofold::Backend> {};

TEST_P(FloatingMode, ChangesNoBitAndIsRestored) {
  const ModeRestorer restore;
  const unsigned plain = _mm_getcsr();
  std::uint64_t seed = 500;
  for (const Family& family : value_families()) {
    for (const DataType type : {DataType::float64, DataType::float32, DataType::float16}) {
      LongRow row = make_long_row(family, 700,
                                  {type, seed % 2 == 0 ? Weighting::none : Weighting::any, true, true, seed});
      row.call.executor.backend = GetParam();
      row.call.executor.chunk_size = 64;
      row.call.executor.threads = 2;
      ++seed;
      Prepared prepared(row);
      prepared.run(plain);
      const std::vector<unsigned char> expected = prepared.results();
      for (const unsigned mode : modes(plain)) {
        prepared.fit.clear();
        prepared.run(mode);
        ASSERT_TRUE(prepared.results() == expected) << row.name << ", mode " << std::hex << mode;
      }
    }
  }
}

// Helper threads start in the mode of whoever starts them.
TEST(FloatingModeOfThreads, ChangesNoBit) {
  const ModeRestorer restore;
  const unsigned plain = _mm_getcsr();
  for (const char* name : {"subnormals", "midpoints", "wide-exponents", "ramp-noise"}) {
    LongRow row =
        make_long_row(*find_family(name), 300000, {DataType::float64, Weighting::none, true, true, 510});
    row.call.executor.threads = 7;
    Prepared prepared(row);
    prepared.run(plain);
    const std::vector<unsigned char> expected = prepared.results();
    for (const unsigned mode : {plain | kFlushToZero | kDenormalsAreZero, plain | 2U << kRoundingShift}) {
      prepared.run(mode);
      ASSERT_TRUE(prepared.results() == expected) << row.name << ", mode " << std::hex << mode;
    }
  }
}

TEST(FloatingModeOfInterpolation, ChangesNoBit) {
  const ModeRestorer restore;
  const unsigned plain = _mm_getcsr();
  const double x[] = {0x1p-1074, 0x1p-1060, 0x1p-1030, 1.0, 3.0};
  const double y[] = {0.0, 0x1p-1070, 0x1p-1040, 0x1.0000000000001p-1022, 0.1};
  std::vector<double> points;
  for (double t = 0x1p-1074; t < 4; t = 1.37 * t + 0x1p-1074) points.push_back(t);
  std::vector<double> expected(points.size());
  std::vector<double> got(points.size());
  const auto count = static_cast<std::int64_t>(points.size());
  ASSERT_TRUE(isofold::interpolate({x, y, 5}, points.data(), count, expected.data()).ok());
  for (const unsigned mode : modes(plain)) {
    _mm_setcsr(mode);
    const bool ok = isofold::interpolate({x, y, 5}, points.data(), count, got.data()).ok();
    const unsigned after = _mm_getcsr();
    _mm_setcsr(plain);
    EXPECT_TRUE(ok);
    EXPECT_EQ(after & ~kStatusFlags, mode & ~kStatusFlags);
    EXPECT_EQ(got, expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, FloatingMode,
                         testing::Values(isofold::Backend::cpu, isofold::Backend::reference));

}  // namespace
}  // namespace isofold_test

#endif
