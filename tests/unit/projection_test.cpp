// Soft ranks, soft sorting and soft top-k of rows small enough to be solved by hand.
#include "isofold/projection.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

namespace isofold_test {
namespace {

using isofold::Projection;
using isofold::ProjectionProblem;
using isofold::StatusCode;

// (1, -2, 2, 3, 0.5, -1)
const std::vector<double> kSorted{3, 2, 1, 0.5, -1, -2};
const std::vector<std::int64_t> kOrder{3, 2, 0, 4, 5, 1};

struct Found {
  std::vector<double> out = std::vector<double>(6);
  std::vector<std::uint8_t> starts = std::vector<std::uint8_t>(6);
};

Found project(const ProjectionProblem& problem) {
  Found found;
  EXPECT_TRUE(isofold::projection(problem, kSorted.data(), found.out.data(), found.starts.data()).ok());
  return found;
}

TEST(Projection, Ranks) {
  const Found found = project({Projection::ranks, 1, 6, kOrder.data()});
  EXPECT_EQ(found.out, (std::vector<double>{3.875, 1, 4.875, 5.875, 3.375, 2}));
}

TEST(Projection, TopTwo) {
  const Found found = project({Projection::top, 1, 6, kOrder.data(), 1, 2, 2});
  const std::vector<double> expected{0.25, 0, 0.75, 1, 0, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_DOUBLE_EQ(found.out[i], expected[i]);
}

// Blocks of one: the values themselves, whose gradient is theirs.
TEST(Projection, SortedByALittle) {
  const ProjectionProblem problem{Projection::sorted, 1, 6, kOrder.data(), 1, 0.125};
  const Found found = project(problem);
  EXPECT_EQ(found.out, kSorted);
  const std::vector<double> incoming{1, 2, 3, 4, 5, 6};
  std::vector<double> gradient(6);
  EXPECT_TRUE(isofold::projection_gradient(problem, found.starts.data(), found.out.data(), incoming.data(),
                                           gradient.data())
                  .ok());
  EXPECT_EQ(gradient, (std::vector<double>{3, 6, 2, 1, 4, 5}));
}

TEST(Projection, GradientOfRanks) {
  const ProjectionProblem problem{Projection::ranks, 1, 6, kOrder.data()};
  const Found found = project(problem);
  const std::vector<double> incoming{1, 0, 0, 0, 0, 0};
  std::vector<double> gradient(6);
  EXPECT_TRUE(isofold::projection_gradient(problem, found.starts.data(), found.out.data(), incoming.data(),
                                           gradient.data())
                  .ok());
  // The four largest are one block.
  EXPECT_EQ(gradient, (std::vector<double>{0.75, 0, -0.25, -0.25, -0.25, 0}));
}

StatusCode refusal(const ProjectionProblem& problem, double first = 3) {
  std::vector<double> sorted = kSorted;
  sorted[0] = first;
  Found found;
  return isofold::projection(problem, sorted.data(), found.out.data(), found.starts.data()).code;
}

TEST(Projection, Refusals) {
  const std::int64_t* order = kOrder.data();
  EXPECT_EQ(refusal({Projection::ranks, 1, 6, order}), StatusCode::ok);
  EXPECT_EQ(refusal({Projection::ranks, 0, 6, nullptr}), StatusCode::ok);
  EXPECT_EQ(refusal({Projection::ranks, -1, 6, order}), StatusCode::invalid_argument);
  EXPECT_EQ(refusal({Projection::ranks, 1, 6, nullptr}), StatusCode::invalid_argument);
  EXPECT_EQ(refusal({Projection::ranks, 1, 6, order, 0.5}), StatusCode::invalid_argument);
  EXPECT_EQ(refusal({Projection::ranks, 1, 6, order, 1, 0}), StatusCode::invalid_argument);
  EXPECT_EQ(refusal({Projection::ranks, 1, 6, order}, std::numeric_limits<double>::infinity()),
            StatusCode::not_finite);
}

}  // namespace
}  // namespace isofold_test
