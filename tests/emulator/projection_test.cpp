// Projections and their gradients: the kernels against the CPU executor, bit by bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "emulator/fit_on_both.hpp"
#include "isofold/projection.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using isofold::Executor;
using isofold::Projection;
using isofold::ProjectionProblem;

template <class T>
struct SortedRows {
  std::vector<T> sorted;
  std::vector<std::int64_t> order;
};

template <class T>
SortedRows<T> sorted_rows(Random& random, std::int64_t rows, std::int64_t length, double sign) {
  SortedRows<T> found;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<T> row(static_cast<std::size_t>(length));
    // Ties, zeros of either sign and close values.
    for (T& x : row) {
      x = static_cast<T>(random.chance(0.2) ? 0.0 * random.normal()
                                            : random.normal() * static_cast<double>(length));
    }
    std::vector<std::int64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return sign * row[static_cast<std::size_t>(a)] > sign * row[static_cast<std::size_t>(b)];
    });
    for (const std::int64_t at : order) found.sorted.push_back(row[static_cast<std::size_t>(at)]);
    found.order.insert(found.order.end(), order.begin(), order.end());
  }
  return found;
}

template <class T>
struct Found {
  std::vector<T> out;
  std::vector<std::uint8_t> starts;
  std::vector<T> gradient;
};

template <class T>
Found<T> on(isofold::Backend backend, const ProjectionProblem& problem, const std::vector<T>& sorted,
            const std::vector<T>& incoming) {
  Found<T> found{std::vector<T>(sorted.size()), std::vector<std::uint8_t>(sorted.size()),
                 std::vector<T>(sorted.size())};
  Executor executor;
  executor.backend = backend;
  EXPECT_TRUE(
      isofold::projection(problem, sorted.data(), found.out.data(), found.starts.data(), executor).ok());
  EXPECT_TRUE(isofold::projection_gradient(problem, found.starts.data(), found.out.data(), incoming.data(),
                                           found.gradient.data(), executor)
                  .ok());
  return found;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
void check_random_projections(std::uint64_t seed) {
  Random random(77, seed);
  for (const Projection kind : {Projection::ranks, Projection::sorted, Projection::top}) {
    ProjectionProblem problem;
    problem.kind = kind;
    problem.rows = random.between(1, 9);
    problem.length = random.chance(0.3) ? random.between(300, 5000) : random.between(1, 70);
    problem.sign = random.chance(0.5) ? 1 : -1;
    problem.strength = random.chance(0.5) ? 1.0 : 0.3 * static_cast<double>(problem.length);
    problem.k = random.between(0, static_cast<int>(problem.length));
    const SortedRows<T> rows = sorted_rows<T>(random, problem.rows, problem.length, problem.sign);
    problem.order = rows.order.data();
    std::vector<T> incoming(rows.sorted.size());
    for (T& g : incoming) g = static_cast<T>(random.normal());
    const Found<T> cpu = on(isofold::Backend::cpu, problem, rows.sorted, incoming);
    const Found<T> device = on(isofold::Backend::cuda, problem, rows.sorted, incoming);
    EXPECT_TRUE(same_bits(cpu.out, device.out));
    EXPECT_TRUE(same_bits(cpu.starts, device.starts));
    EXPECT_TRUE(same_bits(cpu.gradient, device.gradient));
  }
}

class Projections : public OnDevice, public testing::WithParamInterface<std::uint64_t> {};

TEST_P(Projections, AgreeInFloat32) { check_random_projections<float>(GetParam()); }
TEST_P(Projections, AgreeInFloat64) { check_random_projections<double>(GetParam()); }

TEST_F(OnDevice, RowsThatCannotBeProjectedAreNaNAlone) {
  const std::vector<double> sorted{3, 1, 0, std::numeric_limits<double>::infinity(), 2, 1, 9, 5, -4};
  const std::vector<std::int64_t> order{0, 1, 2, 2, 0, 1, 1, 2, 0};
  const ProjectionProblem problem{Projection::ranks, 3, 3, order.data()};
  const Found<double> found = on(isofold::Backend::cuda, problem, sorted, std::vector<double>(9, 1.0));
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(std::isnan(found.out[i]), i / 3 == 1);
    EXPECT_EQ(std::isnan(found.gradient[i]), i / 3 == 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Projections, testing::Range<std::uint64_t>(0, 6));

}  // namespace
}  // namespace isofold_test
