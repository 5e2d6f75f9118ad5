// Batches of conjugate gradients: each system as alone, every way to end, and the linear maps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/linear_systems.hpp"

namespace isofold_test {
namespace {

using isofold::CgProblem;
using isofold::CgStatus;
using isofold::ConstArray;
using isofold::LinearMap;
using isofold::Rows;
using isofold::Status;

template <class T>
inline constexpr isofold::DataType kType = isofold::data_type_of<T>;

struct Call {
  bool compressed = false;
  bool jacobi = false;
  double rtol = 1e-5;
  std::int64_t most = -1;
  std::int64_t replace_every = 0;
  int threads = 1;
};

template <class T>
Solution<T> solved(const CgProblem& problem, const std::vector<T>& guess, int threads = 1) {
  const std::size_t n = guess.size();
  const auto count = static_cast<std::size_t>(problem.systems.count);
  std::vector<T> work[4];
  for (auto& vector : work) vector.assign(n, std::numeric_limits<T>::quiet_NaN());
  Solution<T> found{guess, std::vector<std::int64_t>(count), std::vector<CgStatus>(count),
                    std::vector<double>(count), std::vector<double>(count)};
  isofold::Executor executor;
  executor.threads = threads;
  const Status status = isofold::conjugate_gradient(
      problem, {found.x.data(), work[0].data(), work[1].data(), work[2].data(), work[3].data()},
      {found.iterations.data(), found.status.data(), found.residual_norm.data(),
       found.true_residual_norm.data()},
      executor);
  EXPECT_TRUE(status.ok()) << status.message;
  return found;
}

template <class T>
Solution<T> solved(const LinearSystems<T>& systems, const Call& call = {}) {
  CgProblem problem;
  problem.systems = Rows::ragged(systems.offsets.data(), systems.count());
  problem.right_side = systems.b.data();
  const std::vector<T> values = systems.banded_values();
  const auto rows = systems.compressed();
  if (call.compressed) {
    problem.matrix = linear_map(isofold::CompressedRows{systems.total(), systems.total(), rows.offsets.data(),
                                                        rows.indices.data(), rows.values.data()},
                                kType<T>);
  } else {
    problem.matrix = linear_map(isofold::Banded{problem.systems, systems.width, values.data()}, kType<T>);
  }
  if (call.jacobi) {
    problem.preconditioner =
        linear_map(isofold::BlockDiagonal{systems.total(), 1, systems.inverse_diagonal.data()}, kType<T>);
  }
  problem.rtol_of_all = call.rtol;
  problem.max_iterations_of_all = call.most;
  problem.replace_every = call.replace_every;
  return solved(problem, std::vector<T>(systems.b.size()), call.threads);
}

template <class T>
class ConjugateGradients : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ConjugateGradients, Types);

TYPED_TEST(ConjugateGradients, BatchedAreAsAlone) {
  Random random(1);
  LinearSystems<TypeParam> batch(3);
  for (const std::int64_t length : {1, 2, 0, 5, 33, 100, 1000, 3000}) {
    for (const double ridge : {1.0, 1e-3, 1e-6}) batch.append(random, length, ridge);
  }
  for (const Call& call :
       {Call{}, Call{true, false}, Call{false, true, 1e-7, 60}, Call{true, true, 1e-5, -1, 7}}) {
    const Solution<TypeParam> together = solved(batch, call);
    Call threaded = call;
    threaded.threads = 3;
    EXPECT_TRUE(together == solved(batch, threaded));
    for (std::int64_t s = 0; s < batch.count(); ++s) {
      LinearSystems<TypeParam> one(3);
      one.append(batch, s);
      const Solution<TypeParam> alone = solved(one, call);
      const auto k = static_cast<std::size_t>(s);
      const auto first = together.x.begin() + batch.offsets[k];
      EXPECT_EQ(alone.x, std::vector<TypeParam>(first, first + one.total())) << s;
      EXPECT_EQ(alone.iterations[0], together.iterations[k]) << s;
      EXPECT_EQ(alone.status[0], together.status[k]) << s;
      EXPECT_EQ(alone.residual_norm[0], together.residual_norm[k]) << s;
      EXPECT_EQ(alone.true_residual_norm[0], together.true_residual_norm[k]) << s;
    }
  }
}

// The length of the report of Warp issue 1700, four times over, where its batch had other bits.
TYPED_TEST(ConjugateGradients, LongOnesAreAsAlone) {
  Random random(8);
  LinearSystems<TypeParam> one(2);
  one.append(random, 111580, 1e-7);
  LinearSystems<TypeParam> batch(2);
  batch.append(random, 10, 1.0);
  for (int copy = 0; copy < 4; ++copy) batch.append(one, 0);
  const Call call{false, true, 1e-6, 40};
  const Solution<TypeParam> alone = solved(one, call);
  Call threaded = call;
  threaded.threads = 3;
  const Solution<TypeParam> together = solved(batch, threaded);
  for (std::size_t s = 1; s < 5; ++s) {
    const auto first = together.x.begin() + batch.offsets[s];
    EXPECT_TRUE(std::equal(alone.x.begin(), alone.x.end(), first));
    EXPECT_EQ(alone.true_residual_norm[0], together.true_residual_norm[s]);
    EXPECT_EQ(together.iterations[s], 40);
  }
}

TYPED_TEST(ConjugateGradients, BadSystemsTouchNoOther) {
  Random random(2);
  LinearSystems<TypeParam> good(2);
  for (const std::int64_t length : {40, 300, 7}) good.append(random, length, 0.01);
  const Solution<TypeParam> expected = solved(good);
  LinearSystems<TypeParam> mixed(2);
  for (std::int64_t s = 0; s < 3; ++s) {
    mixed.append(good, s);
    mixed.append(random, 50, 0.1);
    const auto start = static_cast<std::size_t>(mixed.total() - 50);
    if (s == 0) mixed.b[start + 3] = std::numeric_limits<TypeParam>::quiet_NaN();
    if (s == 1) {
      for (std::size_t i = start; i < start + 50; ++i) mixed.diagonals[2][i] = -1;
    }
    if (s == 2) mixed.diagonals[2][start] = std::numeric_limits<TypeParam>::infinity();
  }
  const Solution<TypeParam> found = solved(mixed);
  for (std::size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(found.status[2 * s], CgStatus::converged);
    EXPECT_EQ(found.iterations[2 * s], expected.iterations[s]);
    for (std::int64_t i = 0; i < good.offsets[s + 1] - good.offsets[s]; ++i) {
      EXPECT_EQ(found.x[static_cast<std::size_t>(mixed.offsets[2 * s] + i)],
                expected.x[static_cast<std::size_t>(good.offsets[s] + i)]);
    }
  }
  EXPECT_EQ(found.status[1], CgStatus::not_finite);
  EXPECT_EQ(found.status[3], CgStatus::indefinite_operator);
  EXPECT_EQ(found.status[5], CgStatus::not_finite);
}

TYPED_TEST(ConjugateGradients, TrueResidualsAreThoseOfTheSolution) {
  Random random(3);
  LinearSystems<TypeParam> batch(1);
  batch.append(random, 500, 0.05);
  const Solution<TypeParam> found = solved(batch, Call{false, true, 1e-4});
  ASSERT_EQ(found.status[0], CgStatus::converged);
  double squares = 0;
  double right_side = 0;
  for (std::size_t i = 0; i < 500; ++i) {
    double sum = 0;
    for (std::int64_t d = -1; d <= 1; ++d) {
      const auto j = static_cast<std::int64_t>(i) + d;
      if (j < 0 || j >= 500) continue;
      sum += static_cast<double>(batch.diagonals[static_cast<std::size_t>(d + 1)][i]) *
             static_cast<double>(found.x[static_cast<std::size_t>(j)]);
    }
    squares += std::pow(static_cast<double>(batch.b[i]) - sum, 2);
    right_side += std::pow(static_cast<double>(batch.b[i]), 2);
  }
  EXPECT_NEAR(std::sqrt(squares), found.true_residual_norm[0], 1e-5 * std::sqrt(right_side));
  EXPECT_LE(found.true_residual_norm[0], 1e-4 * std::sqrt(right_side) * (1 + 1e-6));
}

// A diagonal system by a map of ones's own; z likewise.
template <class T>
LinearMap diagonal(std::vector<T> entries) {
  return [entries](const void* x, void* y, const isofold::Executor&) -> Status {
    for (std::size_t i = 0; i < entries.size(); ++i) {
      static_cast<T*>(y)[i] = entries[i] * static_cast<const T*>(x)[i];
    }
    return {};
  };
}

CgProblem diagonal_problem(const std::vector<double>& b, const std::vector<double>& entries) {
  CgProblem problem;
  problem.systems = Rows::single(static_cast<std::int64_t>(b.size()));
  problem.right_side = b.data();
  problem.matrix = diagonal(entries);
  return problem;
}

// Warp issue 189: exact convergence in the middle of an iteration gave NaN.
TEST(ConjugateGradientEnds, OfAnIdentityIsOneIteration) {
  const std::vector<double> b = {1, 2, 3, 4, 5};
  CgProblem problem = diagonal_problem(b, {1, 1, 1, 1, 1});
  problem.rtol_of_all = 0;
  const Solution<double> found = solved(problem, std::vector<double>(5));
  EXPECT_EQ(found.x, b);
  EXPECT_EQ(found.status[0], CgStatus::converged);
  EXPECT_EQ(found.iterations[0], 1);
  EXPECT_EQ(found.true_residual_norm[0], 0.0);
}

TEST(ConjugateGradientEnds, OfAGoodGuessNoIteration) {
  const std::vector<double> b = {1, 2, 3};
  const Solution<double> found = solved(diagonal_problem(b, {1, 2, 4}), std::vector<double>{1, 1, 0.75});
  EXPECT_EQ(found.iterations[0], 0);
  EXPECT_EQ(found.status[0], CgStatus::converged);
  const std::vector<double> zero = {0, 0, 0};
  const Solution<double> nothing = solved(diagonal_problem(zero, {1, 2, 4}), std::vector<double>(3));
  EXPECT_EQ(nothing.status[0], CgStatus::converged);
  EXPECT_EQ(nothing.iterations[0], 0);
}

TEST(ConjugateGradientEnds, AreToldApart) {
  const std::vector<double> b = {1, 2, 3};
  EXPECT_EQ(solved(diagonal_problem(b, {1, -5, 1}), std::vector<double>(3)).status[0],
            CgStatus::indefinite_operator);
  CgProblem problem = diagonal_problem(b, {1, 2, 3});
  problem.preconditioner = diagonal(std::vector<double>{1, -1, -1});
  EXPECT_EQ(solved(problem, std::vector<double>(3)).status[0], CgStatus::indefinite_preconditioner);
  problem = diagonal_problem(b, {1, 2, 3});
  problem.max_iterations_of_all = 2;
  problem.rtol_of_all = 1e-12;
  const Solution<double> early = solved(problem, std::vector<double>(3));
  EXPECT_EQ(early.status[0], CgStatus::max_iterations);
  EXPECT_EQ(early.iterations[0], 2);
  problem = diagonal_problem(b, {1, 2, 3});
  problem.systems = Rows::rectangle(1, 0);
  EXPECT_EQ(solved(problem, std::vector<double>{}).status[0], CgStatus::empty);
}

TEST(ConjugateGradientEnds, ALimitBeyondReachIsNone) {
  const std::vector<double> b = {1, 2, 3};
  CgProblem problem = diagonal_problem(b, {1, 2, 4});
  problem.max_iterations_of_all = std::numeric_limits<std::int64_t>::max();
  problem.replace_every = 1;
  EXPECT_EQ(solved(problem, std::vector<double>(3)).status[0], CgStatus::converged);
}

TEST(ConjugateGradientEnds, WhatIsTooSmallToBeSquaredStagnates) {
  const std::vector<double> b = {1e-170, 2e-170, 3e-170};
  const Solution<double> tiny = solved(diagonal_problem(b, {1, 2, 4}), std::vector<double>(3));
  EXPECT_EQ(tiny.status[0], CgStatus::stagnated);
  EXPECT_GT(tiny.true_residual_norm[0], 0.0);
  const std::vector<double> ones = {1, 1, 1};
  CgProblem problem = diagonal_problem(ones, {1, 2, 3});
  problem.rtol_of_all = 0;
  problem.max_iterations_of_all = 100'000;
  const Solution<double> found = solved(problem, std::vector<double>(3));
  EXPECT_TRUE(found.status[0] == CgStatus::stagnated || found.status[0] == CgStatus::converged);
  EXPECT_LT(found.true_residual_norm[0], 1e-15);
}

TEST(ConjugateGradientEnds, ANormBeyondDoublesIsNoMeasure) {
  const std::vector<double> b(4, 1.7e308);
  const Solution<double> found =
      solved(diagonal_problem(b, {1, 1, 1, 1}), std::vector<double>(4, 0.6 * 1.7e308));
  EXPECT_EQ(found.status[0], CgStatus::not_finite);
}

// CuPy issue 7512: a solve reported success with a true residual above its tolerance.
TEST(ConjugateGradientEnds, ASmallRecursiveResidualIsNoSuccess) {
  Random random(4);
  LinearSystems<float> system(1);
  system.append(random, 2000, 1e-5);
  const Solution<float> found = solved(system, Call{false, false, 1e-9, 20000});
  EXPECT_EQ(found.status[0], CgStatus::stagnated);
  EXPECT_GT(found.true_residual_norm[0], found.residual_norm[0]);
}

TEST(ConjugateGradientEnds, TolerancesAreOfTheSystem) {
  Random random(5);
  LinearSystems<double> batch(1);
  for (int s = 0; s < 3; ++s) batch.append(random, 200, 0.01);
  const std::vector<double> values = batch.banded_values();
  CgProblem problem;
  problem.systems = Rows::ragged(batch.offsets.data(), 3);
  problem.right_side = batch.b.data();
  problem.matrix = linear_map(isofold::Banded{problem.systems, 1, values.data()}, kType<double>);
  const double rtol[] = {1e-2, 1e-8, 1e-8};
  const double atol[] = {0, 0, 1e9};
  const std::int64_t most[] = {100, 3, 100};
  problem.rtol = rtol;
  problem.atol = atol;
  problem.max_iterations = most;
  const Solution<double> found = solved(problem, std::vector<double>(600));
  EXPECT_EQ(found.status[0], CgStatus::converged);
  EXPECT_EQ(found.status[1], CgStatus::max_iterations);
  EXPECT_EQ(found.iterations[1], 3);
  EXPECT_EQ(found.iterations[2], 0);
}

TEST(LinearMaps, OfNormalEquationsAreThoseOfTheProduct) {
  // J = [1 2; 0 1; 3 0], J^T J = [10 2; 2 5].
  const std::int64_t rows[] = {0, 2, 3, 4};
  const std::int64_t columns[] = {0, 1, 1, 0};
  const double values[] = {1, 2, 1, 3};
  const std::int64_t rows_t[] = {0, 2, 4};
  const std::int64_t columns_t[] = {0, 2, 0, 1};
  const double values_t[] = {1, 3, 2, 1};
  double between[3];
  const LinearMap map = normal_equations({3, 2, rows, columns, values}, {2, 3, rows_t, columns_t, values_t},
                                         0.5, between, kType<double>);
  const double x[] = {1, -1};
  double y[2];
  ASSERT_TRUE(map(x, y, {}).ok());
  EXPECT_EQ(y[0], 8.5);
  EXPECT_EQ(y[1], -3.5);
}

TEST(LinearMaps, OfBlocksAndOfColumnsOutside) {
  const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const float x[] = {1, 10, 100, 1000};
  float y[4];
  ASSERT_TRUE(linear_map(isofold::BlockDiagonal{4, 2, values}, kType<float>)(x, y, {}).ok());
  EXPECT_EQ(std::vector<float>(y, y + 4), (std::vector<float>{21, 43, 6500, 8700}));
  const std::int64_t rows[] = {0, 1, 2};
  const std::int64_t columns[] = {1, 2};
  ASSERT_TRUE(linear_map(isofold::CompressedRows{2, 2, rows, columns, values}, kType<float>)(x, y, {}).ok());
  EXPECT_EQ(y[0], 10);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_EQ(linear_map(isofold::BlockDiagonal{4, 3, values}, kType<float>)(x, y, {}).message,
            "size must divide the number of rows: 3, 4");
}

TEST(ConjugateGradientArguments, AreNamed) {
  const std::vector<double> b = {1, 2};
  CgProblem problem = diagonal_problem(b, {1, 1});
  problem.matrix = nullptr;
  EXPECT_EQ(isofold::conjugate_gradient(problem, {}, {}).message, "matrix: no linear map given");
  problem = diagonal_problem(b, {1, 1});
  EXPECT_EQ(isofold::conjugate_gradient(problem, {}, {}).message, "vectors: null pointer");
  problem.right_side = {};
  EXPECT_EQ(isofold::conjugate_gradient(problem, {}, {}).message,
            "right_side: conjugate gradients take float32 and float64");
}

}  // namespace
}  // namespace isofold_test
