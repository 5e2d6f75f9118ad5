// Outputs and gains of leaves: LightGBM's formulas, each one fixed sequence of float64 operations.
//
// All of it happens in units in which the largest gradient and hessian of the grid are about one. They differ
// from the caller's by powers of two, which no operation here notices, so the bits are those of the plain
// formulas; but gradients of 1e200, whose squares are beyond doubles, get their splits as well.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "algorithm/gradient_grid.hpp"
#include "exact/host_device.hpp"
#include "exact/power_of_two.hpp"
#include "isofold/best_splits.hpp"

namespace isofold {

struct LeafSums {
  std::int64_t gradient = 0;
  std::int64_t hessian = 0;
  std::int32_t count = 0;

  ISOFOLD_HOST_DEVICE LeafSums operator+(const LeafSums& other) const {
    return {gradient + other.gradient, hessian + other.hessian, count + other.count};
  }
  ISOFOLD_HOST_DEVICE LeafSums operator-(const LeafSums& other) const {
    return {gradient - other.gradient, hessian - other.hessian, count - other.count};
  }
};

// The rules in the grid's units. Exponents say what a unit is worth.
struct ScaledRules {
  double lambda_l1;
  double lambda_l2;
  double subset_l2;  // with cat_l2
  double min_hessian;
  double min_gain;
  double max_delta_step;
  double path_smooth;
  double cat_smooth;
  double epsilon;  // LightGBM's kEpsilon, or 0
  std::int32_t min_data;
  std::int32_t max_cat_to_onehot;
  std::int32_t max_cat_threshold;
  std::int32_t min_data_per_group;
  std::int32_t cat_smooth_count;
  int output_exponent;
  int gain_exponent;
  TiePolicy ties;
  std::uint8_t extra_trees;
  std::uint64_t extra_seed;
};

ISOFOLD_HOST_DEVICE inline ScaledRules scale_rules(const SplitRules& rules, const GradientGrid& grid) {
  const int gradient = grid.gradient_exponent + kGradientBits;
  const int hessian = grid.hessian_exponent + kHessianBits;
  ScaledRules result{};
  result.lambda_l1 = scaled(rules.lambda_l1, -gradient);
  result.lambda_l2 = scaled(rules.lambda_l2, -hessian);
  result.subset_l2 = scaled(rules.lambda_l2 + rules.cat_l2, -hessian);
  result.min_hessian = scaled(rules.min_sum_hessian_in_leaf, -hessian);
  result.output_exponent = gradient - hessian;
  result.gain_exponent = 2 * gradient - hessian;
  result.min_gain = scaled(rules.min_gain_to_split, -result.gain_exponent);
  result.max_delta_step = scaled(rules.max_delta_step, -result.output_exponent);
  result.path_smooth = rules.path_smooth;
  result.cat_smooth = scaled(rules.cat_smooth, -hessian);
  result.epsilon = rules.ties == TiePolicy::lightgbm ? scaled(1e-15, -hessian) : 0.0;
  result.min_data = rules.min_data_in_leaf > 1 ? rules.min_data_in_leaf : 1;
  result.max_cat_to_onehot = rules.max_cat_to_onehot;
  result.max_cat_threshold = rules.max_cat_threshold;
  result.min_data_per_group = rules.min_data_per_group;
  const double fewest = std::ceil(rules.cat_smooth);
  constexpr double kMostCount = 2147483647.0;
  result.cat_smooth_count = static_cast<std::int32_t>(fewest < kMostCount ? fewest : kMostCount);
  result.ties = rules.ties;
  result.extra_trees = static_cast<std::uint8_t>(rules.extra_trees);
  result.extra_seed = rules.extra_seed;
  return result;
}

ISOFOLD_HOST_DEVICE inline double gradient_of(const LeafSums& sums) {
  return static_cast<double>(sums.gradient) * power_of_two(-kGradientBits);
}
ISOFOLD_HOST_DEVICE inline double hessian_of(const LeafSums& sums) {
  return static_cast<double>(sums.hessian) * power_of_two(-kHessianBits);
}

ISOFOLD_HOST_DEVICE inline double soft_threshold(double gradient, double lambda_l1) {
  const double rest = std::fabs(gradient) - lambda_l1;
  if (!(rest > 0)) return 0.0;
  return gradient < 0 ? -rest : rest;
}

// What a node's sides have in common.
struct NodeState {
  LeafSums total;
  double output = 0;  // what the node's rows get now
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  double shift = 0;  // a split's two gains must be above this; also for subsets, whose cat_l2 is not in it
  std::uint8_t bounded = 0;
};

// One side: doubles in the grid's units.
struct Side {
  double gradient;
  double hessian;
  double count;
};

ISOFOLD_HOST_DEVICE inline double leaf_output(const ScaledRules& rules, double l2, const Side& side,
                                              const NodeState& node) {
  double output = -soft_threshold(side.gradient, rules.lambda_l1) / (side.hessian + l2);
  if (rules.max_delta_step > 0 && std::fabs(output) > rules.max_delta_step) {
    output = output < 0 ? -rules.max_delta_step : rules.max_delta_step;
  }
  if (rules.path_smooth > 0) {
    const double weight = side.count / rules.path_smooth;
    output = output * weight / (weight + 1) + node.output / (weight + 1);
  }
  if (output < node.lower) output = node.lower;
  if (output > node.upper) output = node.upper;
  return output;
}

ISOFOLD_HOST_DEVICE inline double gain_of_output(const ScaledRules& rules, double l2, const Side& side,
                                                 double output) {
  const double gradient = soft_threshold(side.gradient, rules.lambda_l1);
  return -(2.0 * gradient * output + (side.hessian + l2) * output * output);
}

ISOFOLD_HOST_DEVICE inline bool output_matters(const ScaledRules& rules) {
  return rules.max_delta_step > 0 || rules.path_smooth > 0;
}

ISOFOLD_HOST_DEVICE inline double free_gain(const ScaledRules& rules, double l2, const Side& side) {
  const double gradient = soft_threshold(side.gradient, rules.lambda_l1);
  return gradient * gradient / (side.hessian + l2);
}

constexpr double kNoGain = -std::numeric_limits<double>::infinity();

// The gains of both sides, or kNoGain where one gain is not finite or the outputs are in the wrong order.
ISOFOLD_HOST_DEVICE inline double gain_of_sides(const ScaledRules& rules, double l2, const Side& left,
                                                const Side& right, const NodeState& node, int monotone) {
  double gain = 0;
  if (monotone == 0 && node.bounded == 0 && !output_matters(rules)) {
    gain = free_gain(rules, l2, left) + free_gain(rules, l2, right);
  } else {
    const double left_output = leaf_output(rules, l2, left, node);
    const double right_output = leaf_output(rules, l2, right, node);
    if (monotone > 0 && left_output > right_output) return kNoGain;
    if (monotone < 0 && left_output < right_output) return kNoGain;
    gain = gain_of_output(rules, l2, left, left_output) + gain_of_output(rules, l2, right, right_output);
  }
  return std::fabs(gain) <= std::numeric_limits<double>::max() ? gain : kNoGain;
}

ISOFOLD_HOST_DEVICE inline Side plain_side(const LeafSums& sums) {
  return {gradient_of(sums), hessian_of(sums), static_cast<double>(sums.count)};
}

// LightGBM gives the parent twice its kEpsilon.
ISOFOLD_HOST_DEVICE inline Side whole_node(const ScaledRules& rules, const LeafSums& total) {
  Side side = plain_side(total);
  side.hessian += 2 * rules.epsilon;
  return side;
}

// A node's outputs and bounds are the caller's; `outputs` and `bounds` may be nullptr.
ISOFOLD_HOST_DEVICE inline NodeState make_node(const ScaledRules& rules, const LeafSums& total,
                                               const double* output, const double* bounds) {
  NodeState node;
  node.total = total;
  const Side side = whole_node(rules, total);
  if (output != nullptr) {
    node.output = scaled(*output, -rules.output_exponent);
  } else {
    ScaledRules unsmoothed = rules;
    unsmoothed.path_smooth = 0;
    node.output = leaf_output(unsmoothed, rules.lambda_l2, side, node);
  }
  const auto own_gain = [&](double l2) {
    if (!output_matters(rules)) return free_gain(rules, l2, side);
    return gain_of_output(rules, l2, side,
                          rules.path_smooth > 0 ? node.output : leaf_output(rules, l2, side, node));
  };
  node.shift = own_gain(rules.lambda_l2) + rules.min_gain;
  if (bounds != nullptr) {
    node.lower = scaled(bounds[0], -rules.output_exponent);
    node.upper = scaled(bounds[1], -rules.output_exponent);
    node.bounded = 1;
  }
  return node;
}

}  // namespace isofold
