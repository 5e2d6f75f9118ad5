// The best split of each node over all features and bins, from exact histograms.
//
// Gains are float64 by one fixed sequence of operations without contraction, from integer sums: equal sums
// give bit-equal gains. The winner is the maximum of a total order (gain, feature, direction, bin), so it
// does not depend on how a reduction is cut up or on the device. Two splits with different sums and equal
// real gains may differ in the last bit of their gains; that is still the same winner everywhere.
#pragma once

#include <cstdint>

#include "isofold/executor.hpp"
#include "isofold/histogram.hpp"
#include "isofold/status.hpp"

namespace isofold {

// Which of the bins of one feature and direction that tie is taken.
enum class TiePolicy : std::uint8_t {
  lowest,
  highest,
  middle,  // of the run of neighbouring bins that tie with the lowest one, rounded down
  // As LightGBM's CPU learner scans: the highest bin, or where missing values go right the lowest; and its
  // kEpsilon is added to the hessians where it adds it. One-hot categories: the lowest.
  lightgbm,
};

enum class FeatureKind : std::uint8_t { numerical, categorical };

// A categorical feature has at most this many bins.
inline constexpr std::int32_t kMostCategories = 1024;

struct FeatureRules {
  std::int32_t bins = 0;  // bins in use, the one of missing values included
  FeatureKind kind = FeatureKind::numerical;
  std::uint8_t has_missing = 0;  // the last bin in use holds missing values
  std::int8_t monotone = 0;      // 1: outputs must not fall as the feature rises; -1: must not rise
};

// Defaults are LightGBM's.
struct SplitRules {
  double lambda_l1 = 0;
  double lambda_l2 = 0;
  std::int32_t min_data_in_leaf = 20;  // a side of no rows is never taken
  double min_sum_hessian_in_leaf = 1e-3;
  double min_gain_to_split = 0;
  double max_delta_step = 0;
  double path_smooth = 0;
  // Categorical features with at most this many bins in use are split one against the rest; others by
  // subsets in the order of their mean gradients, from either end.
  std::int32_t max_cat_to_onehot = 4;
  std::int32_t max_cat_threshold = 32;
  std::int32_t min_data_per_group = 100;
  double cat_smooth = 10;  // also: fewer rows than this, and a category joins no subset
  double cat_l2 = 10;      // added to lambda_l2 for subsets
  TiePolicy ties = TiePolicy::lowest;
  // Extremely randomised trees: one candidate a node and feature, drawn by a hash of the seed, the node's
  // number and the feature.
  bool extra_trees = false;
  std::uint64_t extra_seed = 0;
};

struct SplitProblem {
  HistogramArrays histogram;                  // only read
  GradientGrid grid;                          //
  const GradientGrid* device_grid = nullptr;  // Backend::cuda: the grid in device memory, instead of `grid`
  std::int32_t nodes = 0;
  std::int32_t features = 0;
  std::int32_t bin_count = 0;
  const FeatureRules* feature_rules = nullptr;  // one a feature; nullptr: numerical, all bins, none missing
  const std::uint8_t* feature_mask = nullptr;   // nodes x features, 0: not to be used; nullptr: all
  const double* parent_outputs = nullptr;       // one a node, for path_smooth; nullptr: the node's own output
  const double* output_bounds = nullptr;        // two a node, lower and upper; nullptr: none
  const std::int64_t* node_numbers = nullptr;   // one a node, for extra_trees; nullptr: 0, 1, ...
  SplitRules rules;
  std::int32_t top_k = 1;  // the best splits of the k best features
};

// One split. Sums are in the grid's units; the right side is the node less the left.
struct Split {
  double gain = 0;    // of both sides, less the node's own and min_gain_to_split
  double margin = 0;  // less the gain of the best other candidate of the same feature or of one ranked after
                      // it; infinite where there is none. Bins of the plateau are the same candidate
  double left_output = 0;
  double right_output = 0;
  std::int64_t left_gradient = 0;
  std::int64_t left_hessian = 0;
  std::int32_t left_count = 0;
  std::int32_t feature = -1;  // -1: no split, and nothing else means anything
  std::int32_t bin = 0;       // numerical: bins up to this one go left; one-hot: the category that goes left;
                              // subsets: how many categories go left, less one
  std::int32_t plateau_first =
      0;  // the run of neighbouring bins with the same gain, to the bit, around `bin`
  std::int32_t plateau_last = 0;
  std::int8_t default_left = 0;  // missing values go left
  std::int8_t kind = 0;          // 0: numerical, 1: one-hot, 2: a subset
  std::int8_t from_above = 0;    // a subset from the end of high gradients
  std::int8_t unused = 0;
};
static_assert(sizeof(Split) == 72, "read by other languages");

// `out` has nodes x top_k entries, in falling order. `left_bins`, for categorical splits, has a bit for each
// bin that goes left, in words of 32: nodes x top_k x ((bin_count + 31) / 32) words, or nullptr. A split is
// valid when both sides have min_data_in_leaf rows and min_sum_hessian_in_leaf and its gain is above zero; a
// gain that is not finite is no split.
[[nodiscard]] Status best_splits(const SplitProblem& problem, Split* out, std::uint32_t* left_bins = nullptr,
                                 const Executor& executor = {});

}  // namespace isofold
