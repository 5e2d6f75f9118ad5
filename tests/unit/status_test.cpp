// Every way to call wrongly, and what the status says: code, argument, row and position.
#include <gtest/gtest.h>

#include <limits>

#include "isofold/isofold.hpp"
#include "support/fit_call.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;
using isofold::IsotonicProblem;
using isofold::Rows;
using isofold::Status;
using isofold::StatusCode;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void expect_fault(const Status& status, StatusCode code, const std::string& argument, std::int64_t row = -1,
                  std::int64_t position = -1) {
  EXPECT_EQ(static_cast<int>(status.code), static_cast<int>(code)) << status.message;
  EXPECT_EQ(status.row, row) << status.message;
  EXPECT_EQ(status.position, position) << status.message;
  EXPECT_NE(status.message.find(argument), std::string::npos)
      << "'" << status.message << "' names no " << argument;
  if (position >= 0) {
    EXPECT_NE(status.message.find(std::to_string(position)), std::string::npos) << status.message;
  }
}

class Statuses : public testing::TestWithParam<Backend> {
 protected:
  void SetUp() override { call_.executor.backend = executor_.backend = GetParam(); }

  FitCall call_;
  isofold::Executor executor_;
};

TEST_P(Statuses, ValuesThatAreNotFinite) {
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    for (const double bad : {kNaN, kInfinity, -kInfinity}) {
      call_.values_type = type;
      call_.values = {1, 2, 3, 2, 1, 0, 5};
      call_.offsets = {0, 2, 2, 5, 7};
      call_.values[3] = bad;
      expect_fault(run_fit(call_).status, StatusCode::not_finite, "values", 2, 1);
      call_.values[1] = bad;  // the first fault is the one reported
      expect_fault(run_fit(call_).status, StatusCode::not_finite, "values", 0, 1);
    }
  }
}

TEST_P(Statuses, TheFirstFaultOfALongRow) {
  call_.values.assign(200000, 0.25);
  call_.values[150000] = kNaN;
  call_.values[190000] = kInfinity;
  call_.executor.threads = 7;
  expect_fault(run_fit(call_).status, StatusCode::not_finite, "values", 0, 150000);
  call_.weights.assign(200000, 1.0);
  call_.weights[149999] = 0.0;
  expect_fault(run_fit(call_).status, StatusCode::weight_not_positive, "weights", 0, 149999);
  call_.weights[100000] = kInfinity;
  expect_fault(run_fit(call_).status, StatusCode::not_finite, "weights", 0, 100000);
}

TEST_P(Statuses, WeightsThatAreNotPositive) {
  for (const double bad : {0.0, -0.0, -1.0}) {
    call_.values = {3, 2, 1};
    call_.weights = {1, 1, bad};
    expect_fault(run_fit(call_).status, StatusCode::weight_not_positive, "weights", 0, 2);
    call_.offsets = {0, 1, 3};
    expect_fault(run_fit(call_).status, StatusCode::weight_not_positive, "weights", 1, 1);
    call_.offsets.clear();
  }
  for (const double bad : {kNaN, kInfinity, -kInfinity}) {
    call_.weights = {bad, 1, 1};
    expect_fault(run_fit(call_).status, StatusCode::not_finite, "weights", 0, 0);
  }
}

TEST_P(Statuses, FaultsInTiedProblems) {
  call_.values = {3, kNaN, 1};
  call_.tie_offsets = {0, 2, 3};
  expect_fault(run_fit(call_).status, StatusCode::not_finite, "values", 0, 1);
  call_.values[1] = 2;
  call_.weights = {1, 1, -1};
  expect_fault(run_fit(call_).status, StatusCode::weight_not_positive, "weights", 0, 2);
}

TEST_P(Statuses, GradientAndBlockWeightsCheckTheirInputsToo) {
  call_.values = {1, 2, kNaN};
  const std::vector<std::uint8_t> starts = {1, 1, 1};
  const GradientCall gradient{{1, 1, 1}};
  expect_fault(run_gradient(call_, starts, gradient).status, StatusCode::not_finite, "values", 0, 2);
  call_.values = {1, 2, 3};
  call_.weights = {1, 0, 1};
  expect_fault(run_gradient(call_, starts, gradient).status, StatusCode::weight_not_positive, "weights", 0,
               1);
  double sums[3];
  const std::vector<double> weights = {1, 1, -2};
  IsotonicProblem problem;
  problem.values = call_.values.data();
  problem.weights = weights.data();
  problem.rows = Rows::single(3);
  expect_fault(isofold::block_weights(problem, starts.data(), sums, executor_),
               StatusCode::weight_not_positive, "weights", 0, 2);
}

TEST_P(Statuses, RowOffsets) {
  call_.values = {1, 2, 3};
  call_.offsets = {1, 3};
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "offsets", -1, 0);
  call_.offsets = {0, 2, 1, 3};
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "offsets", -1, 2);
  call_.offsets = {0, -1, 3};
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "offsets", -1, 1);
}

TEST_P(Statuses, TieOffsets) {
  call_.values = {1, 2, 3, 4};
  call_.tie_offsets = {1, 4};
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "tie_offsets", -1, 0);
  call_.tie_offsets = {0, 2, 1, 4};
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "tie_offsets", -1, 2);
  call_.tie_offsets = {0, 2, 5};
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "tie_offsets", -1, 2);
  call_.tie_offsets = {0, 2, 3};  // one element in no group
  expect_fault(run_fit(call_).status, StatusCode::bad_offsets, "tie_offsets", -1, 2);
  call_.offsets = {0, 2, 4};
  call_.tie_offsets = {0, 1, 3, 4};  // crosses the start of row 1
  const Status status = run_fit(call_).status;
  EXPECT_EQ(status.code, StatusCode::bad_offsets);
  EXPECT_EQ(status.row, 1);
  EXPECT_NE(status.message.find("tie_offsets"), std::string::npos) << status.message;
  EXPECT_NE(status.message.find("row 1"), std::string::npos) << status.message;
}

TEST_P(Statuses, Bounds) {
  call_.values = {1, 2, 3};
  for (const auto& [lower, upper] :
       {std::pair{2.0, 1.0}, {kNaN, 1.0}, {1.0, kNaN}, {kInfinity, -kInfinity}}) {
    call_.lower_bound = lower;
    call_.upper_bound = upper;
    expect_fault(run_fit(call_).status, StatusCode::invalid_argument, "lower_bound");
  }
  call_.lower_bound = call_.upper_bound = 2.0;
  EXPECT_EQ(run_fit(call_).fit(DataType::float64), (std::vector<double>{2, 2, 2}));
}

TEST_P(Statuses, Executor) {
  call_.values = {1, 2, 3};
  for (const std::int64_t size : {-1, 1, 16, 31, 33, 48, 131072}) {
    call_.executor.chunk_size = size;
    expect_fault(run_fit(call_).status, StatusCode::invalid_argument, "chunk_size");
  }
  call_.executor.chunk_size = 0;
  call_.executor.threads = -1;
  expect_fault(run_fit(call_).status, StatusCode::invalid_argument, "threads");
}

TEST_P(Statuses, SizesAndPointers) {
  const double y[3] = {3, 2, 1};
  double fit[3];
  std::uint8_t starts[3] = {1, 0, 0};
  const auto regress = [&](const IsotonicProblem& problem) {
    return isofold::isotonic_regression(problem, {fit, starts}, executor_);
  };
  IsotonicProblem good;
  good.values = y;
  good.rows = Rows::single(3);
  ASSERT_TRUE(regress(good).ok());

  IsotonicProblem problem = good;
  problem.rows = Rows::single(-1);
  expect_fault(regress(problem), StatusCode::invalid_argument, "length");
  problem.rows = Rows::rectangle(-2, 3);
  expect_fault(regress(problem), StatusCode::invalid_argument, "rows");
  problem.rows = Rows::rectangle(std::int64_t{1} << 40, std::int64_t{1} << 40);
  expect_fault(regress(problem), StatusCode::invalid_argument, "rows");
  problem = good;
  problem.values = {};
  expect_fault(regress(problem), StatusCode::invalid_argument, "values");
  problem.values = {nullptr, DataType::float32};
  expect_fault(regress(problem), StatusCode::invalid_argument, "values");
  problem = good;
  problem.weights = {nullptr, DataType::float32};
  expect_fault(regress(problem), StatusCode::invalid_argument, "weights");
  problem = good;
  const std::int64_t ties[2] = {0, 3};
  problem.tie_offsets = ties;
  problem.tie_groups = -1;
  EXPECT_FALSE(regress(problem).ok());
  expect_fault(isofold::isotonic_regression(good, {{nullptr, DataType::float64}, starts}, executor_),
               StatusCode::invalid_argument, "fit");

  const isofold::IsotonicGradient out{fit, {}};
  expect_fault(isofold::isotonic_gradient(good, nullptr, y, out, executor_), StatusCode::invalid_argument,
               "block_starts");
  expect_fault(isofold::isotonic_gradient(good, starts, {}, out, executor_), StatusCode::invalid_argument,
               "gradient");
  expect_fault(isofold::isotonic_gradient(good, starts, {nullptr, DataType::float64}, out, executor_),
               StatusCode::invalid_argument, "gradient");
  expect_fault(isofold::isotonic_gradient(good, starts, y, {{nullptr, DataType::float64}, {}}, executor_),
               StatusCode::invalid_argument, "values");
  expect_fault(isofold::isotonic_gradient(good, starts, y, {fit, {nullptr, DataType::float64}}, executor_),
               StatusCode::invalid_argument, "weights");
  expect_fault(isofold::block_weights(good, nullptr, fit, executor_), StatusCode::invalid_argument,
               "block_starts");
  expect_fault(isofold::block_weights(good, starts, nullptr, executor_), StatusCode::invalid_argument, "out");
  const std::uint8_t no_start[3] = {0, 1, 0};
  expect_fault(isofold::isotonic_gradient(good, no_start, y, out, executor_), StatusCode::invalid_argument,
               "block_starts", 0, 0);
}

TEST_P(Statuses, NothingToDo) {
  FitAnswer answer = run_fit(call_);  // one empty row
  EXPECT_TRUE(answer.status.ok()) << answer.status.message;
  call_.offsets = {0};  // no rows
  EXPECT_TRUE(run_fit(call_).status.ok());
  call_.offsets = {0, 0, 0, 0};
  EXPECT_TRUE(run_fit(call_).status.ok());
  call_.values = {2, 1};
  call_.offsets = {0, 0, 2, 2};
  answer = run_fit(call_);
  EXPECT_TRUE(answer.status.ok()) << answer.status.message;
  EXPECT_EQ(answer.fit(DataType::float64), (std::vector<double>{1.5, 1.5}));
  const GradientAnswer gradient = run_gradient(call_, answer.starts, GradientCall{{1, 0}});
  EXPECT_TRUE(gradient.status.ok()) << gradient.status.message;
  EXPECT_EQ(gradient.block_weights, std::vector<double>{2.0});

  IsotonicProblem empty;
  empty.values = {nullptr, DataType::float32};
  empty.rows = Rows::rectangle(0, 5);
  EXPECT_TRUE(isofold::isotonic_regression(empty, {}, executor_).ok());
  empty.rows = Rows::rectangle(5, 0);
  EXPECT_TRUE(isofold::isotonic_regression(empty, {}, executor_).ok());
  EXPECT_TRUE(isofold::isotonic_gradient(empty, nullptr, {nullptr, DataType::float32}, {}, executor_).ok());
  EXPECT_TRUE(isofold::block_weights(empty, nullptr, nullptr, executor_).ok());
}

TEST_P(Statuses, OutputsAreOptional) {
  const float y[4] = {1, 3, 2, 4};
  IsotonicProblem problem;
  problem.values = y;
  problem.rows = Rows::single(4);
  float fit[4] = {};
  ASSERT_TRUE(isofold::isotonic_regression(problem, {fit, nullptr}, executor_).ok());
  EXPECT_EQ(fit[1], 2.5F);
  std::uint8_t starts[4] = {9, 9, 9, 9};
  ASSERT_TRUE(isofold::isotonic_regression(problem, {{}, starts}, executor_).ok());
  EXPECT_EQ((std::vector<int>{starts[0], starts[1], starts[2], starts[3]}), (std::vector<int>{1, 1, 0, 1}));
  ASSERT_TRUE(isofold::isotonic_regression(problem, {}, executor_).ok());
  double weight_gradient[4] = {};
  ASSERT_TRUE(isofold::isotonic_gradient(problem, starts, y, {{}, weight_gradient}, executor_).ok());
  EXPECT_EQ(weight_gradient[1], 1.25);
  ASSERT_TRUE(isofold::isotonic_gradient(problem, starts, y, {fit, {}}, executor_).ok());
  EXPECT_EQ(fit[2], 2.5F);
}

#ifndef ISOFOLD_HAS_CUDA
// The tests link a build without it; where there is one, scripts/gpu_check.sh tests it.
TEST(CudaAbsent, IsSaidPlainly) {
  const double y[2] = {2.0, 1.0};
  double fit[2] = {};
  IsotonicProblem problem;
  problem.values = y;
  problem.rows = Rows::single(2);
  isofold::Executor executor;
  executor.backend = Backend::cuda;
  const isofold::Status status = isofold::isotonic_regression(problem, {fit, nullptr}, executor);
  EXPECT_EQ(status.code, isofold::StatusCode::unsupported);
  EXPECT_NE(status.message.find("no CUDA executor"), std::string::npos) << status.message;
  std::int64_t bytes = 0;
  EXPECT_EQ(isofold::isotonic_regression_scratch(problem, &bytes).code, isofold::StatusCode::unsupported);
  const std::uint8_t starts[2] = {1, 0};
  EXPECT_EQ(isofold::isotonic_gradient(problem, starts, y, {fit, {}}, executor).code,
            isofold::StatusCode::unsupported);
  EXPECT_EQ(isofold::isotonic_gradient_scratch(problem, &bytes).code, isofold::StatusCode::unsupported);
}

#endif

INSTANTIATE_TEST_SUITE_P(Executors, Statuses, testing::Values(Backend::cpu, Backend::reference));

}  // namespace
}  // namespace isofold_test
