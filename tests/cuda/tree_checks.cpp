#include "cuda/tree_checks.hpp"

#include <cstdio>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/tree_problem.hpp"

namespace isofold_test {
namespace {

using isofold::Executor;

Executor device() {
  Executor executor;
  executor.backend = isofold::Backend::cuda;
  return executor;
}

int compare(const TreeProblem& problem, const char* what, std::uint64_t number) {
  const std::string found = difference(tree_on_device(problem), tree_on_cpu(problem));
  if (found.empty()) return 0;
  std::printf("%s %llu (%lld rows, %d features, %d bins, %d nodes): %s\n", what,
              static_cast<unsigned long long>(number), static_cast<long long>(problem.rows), problem.features,
              problem.bin_count, problem.nodes, found.c_str());
  return 1;
}

// The same rows in another order: every sum is the same, so all results are.
TreeProblem permuted(const TreeProblem& problem, Random& random) {
  TreeProblem other = problem;
  std::vector<std::int64_t> order(static_cast<std::size_t>(problem.rows));
  std::iota(order.begin(), order.end(), 0);
  for (std::int64_t i = problem.rows - 1; i > 0; --i) {
    std::swap(order[static_cast<std::size_t>(i)], order[static_cast<std::size_t>(random.below(i + 1))]);
  }
  std::vector<std::int64_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto from = static_cast<std::size_t>(order[i]);
    place[from] = static_cast<std::int64_t>(i);
    other.gradients[i] = problem.gradients[from];
    if (!problem.hessians.empty()) other.hessians[i] = problem.hessians[from];
    if (!problem.node_ids.empty()) other.node_ids[i] = problem.node_ids[from];
    for (std::int32_t f = 0; f < problem.features; ++f) {
      const auto width = static_cast<std::size_t>(problem.features);
      other.bins[i * width + static_cast<std::size_t>(f)] =
          problem.bins[from * width + static_cast<std::size_t>(f)];
    }
  }
  for (std::int64_t& row : other.subset) row = place[static_cast<std::size_t>(row)];
  other.row_major = !problem.row_major;
  return other;
}

}  // namespace

int check_random_trees(const BatchRange& problems, std::uint64_t seed) {
  int failures = 0;
  for (std::int64_t i = problems.first; i < problems.end; i += problems.step) {
    const auto number = static_cast<std::uint64_t>(i);
    const TreeProblem problem = random_tree_problem(seed, number);
    failures += compare(problem, "random tree", number);
    if (i % 4 != 0) continue;
    Random random(seed + 1, number);
    TreeResult found = tree_on_device(permuted(problem, random));
    TreeResult expected = tree_on_cpu(problem);
    found.quantized = expected.quantized;  // these are in the rows' order
    const std::string what = difference(found, expected);
    if (what.empty()) continue;
    std::printf("random tree %llu, rows in another order: %s\n", static_cast<unsigned long long>(number),
                what.c_str());
    ++failures;
  }
  std::printf("random trees\n");
  return failures;
}

int check_many_rows(std::int64_t rows, std::uint64_t seed) {
  int failures = 0;
  for (const bool row_major : {true, false}) {
    for (const std::int32_t features : {1, 5, 28, 33}) {
      Random random(seed, static_cast<std::uint64_t>(features));
      TreeProblem problem;
      problem.rows = rows;
      problem.features = features;
      problem.bin_count = features == 5 ? 3 : 256;
      problem.row_major = row_major;
      // Nearly all rows in one bin, at the ends of the grid: words overflow as often as they can.
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int32_t f = 0; f < features; ++f) {
          const std::int64_t bin = random.chance(0.9) ? 1 : random.below(problem.bin_count);
          problem.bins.push_back(static_cast<std::uint16_t>(bin));
        }
        problem.gradients.push_back(random.chance(0.9) ? 1.9999999 : -random.unit());
        problem.hessians.push_back(random.chance(0.9) ? 1.9999999 : random.unit());
      }
      failures += compare(problem, "many rows", static_cast<std::uint64_t>(features));
    }
  }
  std::printf("many rows\n");
  return failures;
}

int check_wide_bins(std::uint64_t seed) {
  int failures = 0;
  for (const std::int32_t bins : {400, 455, 600, 1500, 5000, 14000, 20000, 65536}) {
    Random random(seed, static_cast<std::uint64_t>(bins));
    TreeProblem problem;
    problem.rows = 3000;
    problem.features = bins < 10000 ? 7 : 2;
    problem.bin_count = bins;
    problem.wide_bins = true;
    problem.nodes = bins == 600 ? 300 : 2;
    for (std::int64_t i = 0; i < problem.rows; ++i) {
      for (std::int32_t f = 0; f < problem.features; ++f) {
        problem.bins.push_back(static_cast<std::uint16_t>(random.below(bins)));
      }
      problem.gradients.push_back(random.normal());
      problem.node_ids.push_back(static_cast<std::int32_t>(random.between(-1, problem.nodes - 1)));
    }
    problem.rules.min_data_in_leaf = 1;
    problem.top_k = 2;
    failures += compare(problem, "wide bins", static_cast<std::uint64_t>(bins));
  }
  // More nodes than blocks count in shared memory.
  Random random(seed, 1);
  TreeProblem problem;
  problem.rows = 20000;
  problem.features = 1;
  problem.bin_count = 2;
  problem.nodes = 5000;
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    problem.bins.push_back(static_cast<std::uint16_t>(random.below(2)));
    problem.gradients.push_back(random.normal());
    problem.node_ids.push_back(static_cast<std::int32_t>(random.below(problem.nodes)));
  }
  problem.rules.min_data_in_leaf = 1;
  failures += compare(problem, "many nodes", 0);
  std::printf("wide bins\n");
  return failures;
}

int check_refused_gradients_of_trees() {
  int failures = 0;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> bad{std::numeric_limits<double>::quiet_NaN(), kInfinity, -kInfinity};
  for (std::size_t which = 0; which < 5; ++which) {
    std::vector<double> gradients(100, 1.0);
    std::vector<double> hessians(100, 1.0);
    if (which < 3) gradients[37] = bad[which];
    if (which == 3) hessians[37] = -1.0;
    const DeviceArray<double> g(gradients);
    const DeviceArray<double> h(hessians);
    const DeviceArray<isofold::QuantizedGradient> quantized(100);
    const DeviceArray<isofold::GradientGrid> grid(1);
    const DeviceArray<isofold::GradientGrid> given(
        std::vector<isofold::GradientGrid>{{-40, -40, 0}});  // which holds no one
    isofold::GradientProblem problem;
    problem.gradients = g.data();
    problem.hessians = h.data();
    problem.rows = 100;
    const isofold::Status status = isofold::quantize_gradients(problem, which == 4 ? given.data() : nullptr,
                                                               quantized.data(), grid.data(), device());
    const isofold::QuantizedGradient refused = quantized.host()[37];
    if (status.ok() && grid.host()[0].fault == 1 && refused.gradient == 0 && refused.hessian == 0) continue;
    std::printf("gradient fault %zu: not refused\n", which);
    ++failures;
  }
  // Bins, nodes and rows that are out of range.
  for (int which = 0; which < 4; ++which) {
    std::vector<std::uint8_t> bins(100, 2);
    std::vector<std::int32_t> ids(100, 0);
    std::vector<std::int64_t> rows{0, 5, 99};
    if (which == 1) bins[5] = 3;
    if (which == 2) ids[5] = 7;
    if (which == 3) rows[1] = 100;
    const DeviceArray<std::uint8_t> device_bins(bins);
    const DeviceArray<std::int32_t> device_ids(ids);
    const DeviceArray<std::int64_t> device_rows(rows);
    const DeviceArray<isofold::QuantizedGradient> quantized(
        std::vector<isofold::QuantizedGradient>(100, {1, 1}));
    const DeviceArray<std::int64_t> gradients(3);
    const DeviceArray<std::int64_t> hessians(3);
    const DeviceArray<std::int32_t> counts(3);
    const DeviceArray<std::int32_t> fault(1);
    isofold::HistogramProblem problem;
    problem.bins = isofold::BinMatrix::row_major(device_bins.data(), isofold::BinType::uint8, 100, 1);
    problem.gradients = quantized.data();
    problem.bin_count = 3;
    problem.node_ids = device_ids.data();
    problem.row_subset = device_rows.data();
    problem.subset_rows = 3;
    const isofold::Status status = isofold::histogram(
        problem, {gradients.data(), hessians.data(), counts.data()}, device(), fault.data());
    const int wrong = which == 0 ? 0 : 1;
    if (status.ok() && fault.host()[0] == wrong && counts.host()[2] == 3 - wrong) continue;
    std::printf("histogram fault %d: not refused\n", which);
    ++failures;
  }
  std::printf("refused gradients of trees\n");
  return failures;
}

int check_device_subtraction(std::uint64_t seed) {
  Random random(seed);
  constexpr std::int64_t kEntries = 1000;
  std::vector<std::int64_t> parent(kEntries);
  std::vector<std::int64_t> child(kEntries);
  std::vector<std::int32_t> counts(kEntries, 9);
  std::vector<std::int32_t> fewer(kEntries, 4);
  for (std::size_t i = 0; i < kEntries; ++i) {
    parent[i] = static_cast<std::int64_t>(random.bits() >> 4);
    child[i] = static_cast<std::int64_t>(random.bits() >> 4);
  }
  const DeviceArray<std::int64_t> p(parent);
  const DeviceArray<std::int64_t> c(child);
  const DeviceArray<std::int32_t> pn(counts);
  const DeviceArray<std::int32_t> cn(fewer);
  const DeviceArray<std::int64_t> g(kEntries);
  const DeviceArray<std::int64_t> h(kEntries);
  const DeviceArray<std::int32_t> n(kEntries);
  const isofold::Status status =
      isofold::subtract_histogram({p.data(), p.data(), pn.data()}, {c.data(), c.data(), cn.data()}, kEntries,
                                  {g.data(), h.data(), n.data()}, device());
  bool right = status.ok() && g.margins_intact() && h.margins_intact() && n.margins_intact();
  const std::vector<std::int64_t> found = g.host();
  for (std::size_t i = 0; i < kEntries; ++i) right = right && found[i] == parent[i] - child[i];
  right = right && h.host() == found && n.host() == std::vector<std::int32_t>(kEntries, 5);
  if (!right) std::printf("subtraction: wrong\n");
  return right ? 0 : 1;
}

}  // namespace isofold_test
