// The candidates of one feature of one node, and the total order that the best of them is the maximum of.
#pragma once

#include <cstdint>

#include "algorithm/split_rules.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// Candidates are told apart by a direction and a bin:
//   numerical   0: missing values go left, or there are none; 1: they go right. Bins up to `bin` go left.
//   one-hot     0; `bin` goes left
//   subset      0: from low ratios of gradient to hessian, 1: from high ones; the first bin + 1 go left
struct Candidate {
  double gain = kNoGain;  // of both sides; the node's own is not yet taken off
  std::int32_t direction = 0;
  std::int32_t bin = 0;

  [[nodiscard]] ISOFOLD_HOST_DEVICE bool found() const { return gain > kNoGain; }
};

enum class ScanKind : std::uint8_t { numerical, one_hot, subset };

// One feature of one node, and the rules for it.
struct FeatureView {
  const std::int64_t* gradients;
  const std::int64_t* hessians;
  const std::int32_t* counts;
  std::int32_t values;  // bins without the one of missing values, which comes after them
  std::int32_t has_missing;
  std::int32_t monotone;
  ScanKind kind;

  [[nodiscard]] ISOFOLD_HOST_DEVICE LeafSums bin(std::int32_t at) const {
    return {gradients[at], hessians[at], counts[at]};
  }
  [[nodiscard]] ISOFOLD_HOST_DEVICE LeafSums missing() const {
    return has_missing != 0 ? bin(values) : LeafSums{};
  }
};

// On a device nobody has checked the rules: nothing is read beyond the feature's bins whatever they are.
ISOFOLD_HOST_DEVICE inline FeatureView feature_view(const HistogramArrays& histogram, std::int64_t base,
                                                    std::int32_t bin_count, const FeatureRules& feature,
                                                    const ScaledRules& rules) {
  const std::int32_t bins = feature.bins > bin_count ? bin_count : feature.bins;
  const std::int32_t missing = feature.has_missing != 0 && bins > 0 ? 1 : 0;
  FeatureView view{
      histogram.gradients + base, histogram.hessians + base, histogram.counts + base, bins - missing, missing,
      feature.monotone,           ScanKind::numerical};
  if (feature.kind == FeatureKind::categorical) {
    view.kind = bins <= rules.max_cat_to_onehot ? ScanKind::one_hot : ScanKind::subset;
    if (bins > kMostCategories) view.values = 0;
  }
  return view;
}

ISOFOLD_HOST_DEVICE inline bool prefers_high(TiePolicy ties, ScanKind kind, std::int32_t direction) {
  if (kind == ScanKind::subset) return false;
  if (ties == TiePolicy::lightgbm) return kind == ScanKind::numerical && direction == 0;
  return ties == TiePolicy::highest;
}

// Whether `a` comes before `b` among the candidates of one feature. No two are equal in it.
ISOFOLD_HOST_DEVICE inline bool comes_before(const Candidate& a, const Candidate& b, TiePolicy ties,
                                             ScanKind kind) {
  if (a.gain != b.gain) return a.gain > b.gain;
  if (a.direction != b.direction) return a.direction < b.direction;
  return prefers_high(ties, kind, a.direction) ? a.bin > b.bin : a.bin < b.bin;
}

// A side with too few rows or too little hessian makes a candidate invalid. In LightGBM's way, kEpsilon goes
// to the side that its scan adds up, and the other side is what that leaves of the parent.
struct Sides {
  Side left;
  Side right;
};

ISOFOLD_HOST_DEVICE inline Sides sides_of(const ScaledRules& rules, const NodeState& node,
                                          const LeafSums& left, ScanKind kind, std::int32_t direction) {
  Sides sides{plain_side(left), plain_side(node.total - left)};
  if (rules.ties == TiePolicy::lightgbm) {
    const double whole = whole_node(rules, node.total).hessian;
    if (kind == ScanKind::one_hot) {
      sides.right.hessian = whole - sides.left.hessian - rules.epsilon;
      sides.left.hessian += rules.epsilon;
    } else if (kind == ScanKind::numerical && direction == 0) {
      sides.right.hessian += rules.epsilon;
      sides.left.hessian = whole - sides.right.hessian;
    } else {
      sides.left.hessian += rules.epsilon;
      sides.right.hessian = whole - sides.left.hessian;
    }
  }
  return sides;
}

ISOFOLD_HOST_DEVICE inline double leaf_l2(const ScaledRules& rules, ScanKind kind) {
  return kind == ScanKind::subset ? rules.subset_l2 : rules.lambda_l2;
}

ISOFOLD_HOST_DEVICE inline double candidate_gain(const ScaledRules& rules, const NodeState& node,
                                                 const FeatureView& feature, const LeafSums& left,
                                                 std::int32_t direction) {
  if (left.count < rules.min_data || node.total.count - left.count < rules.min_data) return kNoGain;
  const Sides sides = sides_of(rules, node, left, feature.kind, direction);
  if (sides.left.hessian < rules.min_hessian || sides.right.hessian < rules.min_hessian) return kNoGain;
  const double gain =
      gain_of_sides(rules, leaf_l2(rules, feature.kind), sides.left, sides.right, node, feature.monotone);
  return gain > node.shift ? gain : kNoGain;
}

// ---- Which candidates there are ----

// Numerical: thresholds of a direction. Where no row of the node misses the feature, both directions are the
// same splits; then only the first is looked at, so that which one is returned depends on nothing.
ISOFOLD_HOST_DEVICE inline std::int32_t thresholds(const FeatureView& feature, std::int32_t direction) {
  if (direction == 0) return feature.values - 1;
  return feature.has_missing != 0 && feature.counts[feature.values] > 0 ? feature.values : 0;
}

ISOFOLD_HOST_DEVICE inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Extremely randomised trees: the one bin or position of `count` that may be taken; -1 when all may.
ISOFOLD_HOST_DEVICE inline std::int32_t drawn(const ScaledRules& rules, std::int64_t node_number,
                                              std::int32_t feature, std::int32_t count) {
  if (rules.extra_trees == 0 || count <= 0) return -1;
  constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15ULL;
  std::uint64_t state = mixed(rules.extra_seed + kStep);
  state = mixed(state ^ (static_cast<std::uint64_t>(node_number) + kStep));
  state = mixed(state ^ (static_cast<std::uint64_t>(feature) + kStep));
  return static_cast<std::int32_t>(state % static_cast<std::uint64_t>(count));
}

// How many candidates of a feature one is drawn from.
ISOFOLD_HOST_DEVICE inline std::int32_t drawn_from(const FeatureView& feature, std::int32_t subset_size) {
  if (feature.kind == ScanKind::numerical) return feature.values - 1;
  return feature.kind == ScanKind::one_hot ? feature.values : subset_size;
}

// Categories in the order of this, then of their bins.
ISOFOLD_HOST_DEVICE inline double category_ratio(const ScaledRules& rules, const LeafSums& sums) {
  const double ratio = gradient_of(sums) / (hessian_of(sums) + rules.cat_smooth);
  return ratio == ratio ? ratio : 0.0;
}

ISOFOLD_HOST_DEVICE inline bool joins_subsets(const ScaledRules& rules, std::int32_t count) {
  return count > 0 && count >= rules.cat_smooth_count;
}

ISOFOLD_HOST_DEVICE inline std::int32_t most_in_subset(const ScaledRules& rules, std::int32_t joining) {
  const std::int32_t half = (joining + 1) / 2;
  return half < rules.max_cat_threshold ? half : rules.max_cat_threshold;
}

// Calls visit(candidate) for the subsets of one direction: prefixes of `order`, which holds the `joining`
// bins, from one end. A group of min_data_per_group rows has to join before the next candidate.
template <class Visit>
ISOFOLD_HOST_DEVICE void visit_subsets(const ScaledRules& rules, const NodeState& node,
                                       const FeatureView& feature, const std::int32_t* order,
                                       std::int32_t joining, std::int32_t only, std::int32_t direction,
                                       const Visit& visit) {
  LeafSums left;
  std::int32_t group = 0;
  const std::int32_t most = most_in_subset(rules, joining);
  for (std::int32_t i = 0; i < most; ++i) {
    const LeafSums added = feature.bin(order[direction == 0 ? i : joining - 1 - i]);
    left = left + added;
    group += added.count;
    const Sides sides = sides_of(rules, node, left, feature.kind, direction);
    if (left.count < rules.min_data || sides.left.hessian < rules.min_hessian) continue;
    const std::int32_t right_count = node.total.count - left.count;
    if (right_count < rules.min_data || right_count < rules.min_data_per_group) break;
    if (sides.right.hessian < rules.min_hessian) break;
    if (group < rules.min_data_per_group) continue;
    group = 0;
    if (only >= 0 && i != only) continue;
    visit(Candidate{candidate_gain(rules, node, feature, left, direction), direction, i});
  }
}

// ---- Across features ----

// The best candidate of a feature. Of two features the one with the larger gain less the node's own comes
// first, then the lower one.
struct FeatureBest {
  double gain = kNoGain;  // less the node's own
  Candidate candidate;
};

ISOFOLD_HOST_DEVICE inline FeatureBest feature_best(const NodeState& node, const Candidate& candidate) {
  return {candidate.found() ? candidate.gain - node.shift : kNoGain, candidate};
}

ISOFOLD_HOST_DEVICE inline bool feature_before(double gain, std::int32_t feature, double other_gain,
                                               std::int32_t other_feature) {
  return gain != other_gain ? gain > other_gain : feature < other_feature;
}

// What is reported of a winner. `left` is its left side; `runner_up` the best gain, less the node's own,
// among the candidates that the margin is to.
ISOFOLD_HOST_DEVICE inline Split describe(const ScaledRules& rules, const NodeState& node,
                                          const FeatureView& view, std::int32_t feature,
                                          const FeatureBest& best, const LeafSums& left, double runner_up) {
  const Candidate& candidate = best.candidate;
  const double l2 = leaf_l2(rules, view.kind);
  const Sides sides = sides_of(rules, node, left, view.kind, candidate.direction);
  Split split;
  split.gain = scaled(best.gain, rules.gain_exponent);
  split.margin = runner_up > kNoGain ? scaled(best.gain - runner_up, rules.gain_exponent) : -kNoGain;
  // A sum with 0.0: no negative zeros.
  split.left_output = scaled(leaf_output(rules, l2, sides.left, node), rules.output_exponent) + 0.0;
  split.right_output = scaled(leaf_output(rules, l2, sides.right, node), rules.output_exponent) + 0.0;
  split.left_gradient = left.gradient;
  split.left_hessian = left.hessian;
  split.left_count = left.count;
  split.feature = feature;
  split.bin = candidate.bin;
  split.plateau_first = candidate.bin;
  split.plateau_last = candidate.bin;
  split.default_left = static_cast<std::int8_t>(view.kind == ScanKind::numerical && candidate.direction == 0);
  split.kind = static_cast<std::int8_t>(view.kind);
  split.from_above = static_cast<std::int8_t>(view.kind == ScanKind::subset && candidate.direction == 1);
  return split;
}

}  // namespace isofold
