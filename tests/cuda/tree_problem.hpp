// A random problem for growing trees, and what an executor makes of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "isofold/isofold.hpp"
#include "support/random.hpp"

namespace isofold_test {

struct TreeProblem {
  std::int64_t rows = 0;
  std::int32_t features = 0;
  std::int32_t bin_count = 1;
  std::int32_t nodes = 1;
  bool wide_bins = false;  // uint16
  bool row_major = true;
  std::vector<std::uint16_t> bins;  // row-major, whatever the layout asked for
  bool single_gradients = false;
  std::vector<double> gradients;
  std::vector<double> hessians;  // or empty: ones
  std::vector<std::int32_t> node_ids;
  std::vector<std::int64_t> subset;
  bool has_subset = false;
  std::vector<isofold::FeatureRules> feature_rules;
  std::vector<std::uint8_t> mask;
  std::vector<double> parent_outputs;
  std::vector<double> output_bounds;
  std::vector<std::int64_t> node_numbers;
  isofold::SplitRules rules;
  std::int32_t top_k = 1;
};

struct TreeResult {
  std::vector<isofold::QuantizedGradient> quantized;
  isofold::GradientGrid grid;
  std::vector<std::int64_t> gradients;
  std::vector<std::int64_t> hessians;
  std::vector<std::int32_t> counts;
  std::vector<isofold::Split> splits;
  std::vector<std::uint32_t> left_bins;
};

template <class T>
std::vector<T> picked(Random& random, std::initializer_list<T> values, std::size_t count) {
  std::vector<T> result(count);
  for (T& value : result) {
    value = values.begin()[random.below(static_cast<std::int64_t>(values.size()))];
  }
  return result;
}
template <class T>
T pick(Random& random, std::initializer_list<T> values) {
  return picked(random, values, 1)[0];
}

inline double random_gradient(Random& random, std::int64_t family) {
  switch (family) {
    case 0:
      return static_cast<double>(random.between(-3, 3));
    case 1:
      return random.normal();
    case 2:
      return random.chance(0.1) ? random.sign() : 0.0;
    case 3:
      return random.normal() * std::pow(10.0, random.unit() * 12 - 6);
    case 4:
      return random.normal() * 0x1p-1050;
    default:
      return random.normal() * 0x1p900;
  }
}

inline isofold::SplitRules random_rules(Random& random) {
  isofold::SplitRules rules;
  rules.lambda_l1 = pick(random, {0.0, 0.0, 0.5});
  rules.lambda_l2 = pick(random, {0.0, 1.0, 0.1});
  rules.min_data_in_leaf = pick(random, {0, 1, 5, 20});
  rules.min_sum_hessian_in_leaf = pick(random, {0.0, 1e-3, 1.0});
  rules.min_gain_to_split = pick(random, {0.0, 0.0, 0.1});
  rules.max_delta_step = pick(random, {0.0, 0.0, 0.3});
  rules.path_smooth = pick(random, {0.0, 0.0, 2.0});
  rules.max_cat_to_onehot = pick(random, {0, 4, 40});
  rules.max_cat_threshold = pick(random, {1, 4, 32});
  rules.min_data_per_group = pick(random, {0, 1, 10});
  rules.cat_smooth = pick(random, {0.0, 1.0, 2.5});
  rules.cat_l2 = pick(random, {0.0, 10.0});
  rules.ties = pick(random, {isofold::TiePolicy::lowest, isofold::TiePolicy::highest,
                             isofold::TiePolicy::middle, isofold::TiePolicy::lightgbm});
  rules.extra_trees = random.chance(0.2);
  rules.extra_seed = random.bits();
  return rules;
}

inline TreeProblem random_tree_problem(std::uint64_t seed, std::uint64_t number) {
  Random random(seed, number);
  TreeProblem problem;
  problem.rows = random.between(0, pick<std::int64_t>(random, {40, 400, 3000}));
  problem.features = static_cast<std::int32_t>(random.between(0, pick<std::int64_t>(random, {3, 9, 70})));
  problem.nodes = static_cast<std::int32_t>(random.between(1, pick<std::int64_t>(random, {1, 3, 20})));
  problem.wide_bins = random.chance(0.3);
  problem.bin_count = static_cast<std::int32_t>(
      random.between(1, pick<std::int64_t>(random, {4, 40, 256, problem.wide_bins ? 1500 : 200})));
  problem.row_major = random.chance(0.5);
  const auto features = static_cast<std::size_t>(problem.features);
  problem.feature_rules.resize(features);
  std::vector<std::int32_t> used(features);
  for (std::size_t f = 0; f < features; ++f) {
    isofold::FeatureRules& rules = problem.feature_rules[f];
    rules.bins = static_cast<std::int32_t>(random.between(1, problem.bin_count));
    rules.has_missing = static_cast<std::uint8_t>(random.chance(0.3));
    if (random.chance(0.3) && rules.bins <= isofold::kMostCategories) {
      rules.kind = isofold::FeatureKind::categorical;
    } else {
      rules.monotone = pick<std::int8_t>(random, {0, 0, 1, -1});
    }
    // Few of the bins hold rows: plateaus.
    used[f] = random.chance(0.4) ? std::min(rules.bins, 3) : rules.bins;
  }
  const double missing = pick(random, {0.0, 0.1, 0.5});
  const std::int64_t family = random.below(6);
  const std::int64_t hessian_family = random.below(4);
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    for (std::size_t f = 0; f < features; ++f) {
      const isofold::FeatureRules& rules = problem.feature_rules[f];
      std::int64_t bin = random.below(used[f]);
      if (rules.has_missing != 0 && random.chance(missing)) bin = rules.bins - 1;
      problem.bins.push_back(static_cast<std::uint16_t>(bin));
    }
    problem.gradients.push_back(random_gradient(random, family));
    if (hessian_family == 1) problem.hessians.push_back(static_cast<double>(random.below(3)));
    if (hessian_family == 2) problem.hessians.push_back(random.unit());
    if (hessian_family == 3) {
      problem.hessians.push_back(random.unit() * std::pow(10.0, random.unit() * 12 - 9));
    }
  }
  problem.single_gradients = family < 4 && random.chance(0.4);
  if (problem.single_gradients) {
    for (double& g : problem.gradients) g = static_cast<double>(static_cast<float>(g));
    for (double& h : problem.hessians) h = static_cast<double>(static_cast<float>(h));
  }
  if (problem.nodes > 1 || random.chance(0.3)) {
    for (std::int64_t row = 0; row < problem.rows; ++row) {
      problem.node_ids.push_back(static_cast<std::int32_t>(random.between(-1, problem.nodes - 1)));
    }
  }
  if (problem.rows > 0 && random.chance(0.3)) {
    problem.has_subset = true;
    for (std::int64_t i = random.below(problem.rows) + 1; i > 0; --i) {
      problem.subset.push_back(random.below(problem.rows));
    }
  }
  const auto nodes = static_cast<std::size_t>(problem.nodes);
  if (random.chance(0.4)) problem.mask = picked<std::uint8_t>(random, {0, 1, 1, 1}, nodes * features);
  if (random.chance(0.3)) {
    for (std::size_t n = 0; n < nodes; ++n) problem.parent_outputs.push_back(random.normal());
  }
  if (random.chance(0.2)) {
    for (std::size_t n = 0; n < nodes; ++n) {
      const double low = random.normal();
      problem.output_bounds.push_back(low);
      problem.output_bounds.push_back(low + random.unit());
    }
  }
  if (random.chance(0.3)) {
    for (std::size_t n = 0; n < nodes; ++n) problem.node_numbers.push_back(random.below(1000));
  }
  problem.rules = random_rules(random);
  problem.top_k = static_cast<std::int32_t>(random.between(1, 4));
  return problem;
}

// The bins as the problem's layout and type have them, as bytes.
inline std::vector<std::uint8_t> laid_out(const TreeProblem& problem) {
  const std::size_t width = problem.wide_bins ? 2 : 1;
  std::vector<std::uint8_t> bytes(problem.bins.size() * width);
  for (std::int64_t row = 0; row < problem.rows; ++row) {
    for (std::int64_t f = 0; f < problem.features; ++f) {
      const std::uint16_t bin = problem.bins[static_cast<std::size_t>(row * problem.features + f)];
      const auto at =
          static_cast<std::size_t>(problem.row_major ? row * problem.features + f : f * problem.rows + row);
      bytes[at * width] = static_cast<std::uint8_t>(bin);
      if (width == 2) bytes[at * width + 1] = static_cast<std::uint8_t>(bin >> 8);
    }
  }
  return bytes;
}

TreeResult tree_on_cpu(const TreeProblem& problem);
TreeResult tree_on_device(const TreeProblem& problem);
// What differs first; empty: nothing.
std::string difference(const TreeResult& found, const TreeResult& expected);

}  // namespace isofold_test
