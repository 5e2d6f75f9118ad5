#include "api/tree_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "algorithm/gradient_grid.hpp"
#include "api/checks.hpp"

namespace isofold::api {
namespace {

Status bad(std::string message, std::int64_t position = -1) {
  return fault(StatusCode::invalid_argument, std::move(message), -1, position);
}

std::string text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  return buffer;
}

bool float_array(const ConstArray& array) {
  return array.type == DataType::float32 || array.type == DataType::float64;
}

double element(const ConstArray& array, std::int64_t i) {
  if (!array.present()) return 1.0;
  if (array.type == DataType::float32) return static_cast<double>(static_cast<const float*>(array.data)[i]);
  return static_cast<const double*>(array.data)[i];
}

std::string range(std::int64_t value, std::int64_t count, const char* what) {
  return std::to_string(value) + ", and there are " + std::to_string(count) + " " + what;
}

Status check_parameter(double value, const char* name) {
  if (value >= 0 && std::isfinite(value)) return {};
  return bad(std::string(name) + " must be finite and not negative: " + text(value));
}

Status check_parameter(std::int32_t value, const char* name) {
  return value >= 0 ? Status{} : bad(std::string(name) + " must not be negative: " + std::to_string(value));
}

}  // namespace

Status check_gradients(const GradientProblem& problem, const void* out) {
  if (problem.rows < 0) return bad("rows must not be negative: " + std::to_string(problem.rows));
  if (problem.rows > kMostHistogramRows)
    return bad("rows: at most 2^31 - 1, not " + std::to_string(problem.rows));
  if (!problem.gradients.present()) return bad("gradients: no array given");
  if (!float_array(problem.gradients)) return bad("gradients must be float32 or float64");
  if (problem.hessians.present() && !float_array(problem.hessians)) {
    return bad("hessians must be float32 or float64");
  }
  if (problem.rows == 0) return {};
  if (problem.gradients.data == nullptr) return bad("gradients: null pointer");
  if (problem.hessians.present() && problem.hessians.data == nullptr) return bad("hessians: null pointer");
  if (out == nullptr) return bad("out: null pointer");
  return {};
}

Status check_grid(const GradientGrid& grid) {
  if (grid.fault != 0) return bad("grid: of gradients that were refused (its fault is set)");
  if (sound(grid)) return {};
  return bad("grid: exponents must be from -1074 to 1023, and are " + std::to_string(grid.gradient_exponent) +
             " and " + std::to_string(grid.hessian_exponent));
}

Status check_arrays(const HistogramArrays& arrays, std::int64_t entries, const char* name) {
  if (entries < 0) return bad("entries must not be negative: " + std::to_string(entries));
  if (entries == 0) return {};
  if (arrays.gradients == nullptr) return bad(std::string(name) + ".gradients: null pointer");
  if (arrays.hessians == nullptr) return bad(std::string(name) + ".hessians: null pointer");
  if (arrays.counts == nullptr) return bad(std::string(name) + ".counts: null pointer");
  return {};
}

Status check_histogram(const HistogramProblem& problem, const HistogramArrays& out) {
  const BinMatrix& bins = problem.bins;
  const std::int32_t most = bins.type == BinType::uint8 ? 256 : 65536;
  if (bins.rows < 0) return bad("bins: the number of rows is negative: " + std::to_string(bins.rows));
  if (bins.features < 0) {
    return bad("bins: the number of features is negative: " + std::to_string(bins.features));
  }
  if (bins.row_step < 0) return bad("bins: row_step is negative: " + std::to_string(bins.row_step));
  if (bins.feature_step < 0)
    return bad("bins: feature_step is negative: " + std::to_string(bins.feature_step));
  if (problem.bin_count < 1 || problem.bin_count > most) {
    return bad("bin_count must be from 1 to " + std::to_string(most) + ": " +
               std::to_string(problem.bin_count));
  }
  if (problem.nodes < 0) return bad("nodes must not be negative: " + std::to_string(problem.nodes));
  if (problem.subset_rows < 0) {
    return bad("subset_rows must not be negative: " + std::to_string(problem.subset_rows));
  }
  const std::int64_t terms = problem.row_subset != nullptr ? problem.subset_rows : bins.rows;
  if (terms > kMostHistogramRows || bins.rows > kMostHistogramRows) {
    return bad("bins: at most 2^31 - 1 rows, not " + std::to_string(std::max(terms, bins.rows)));
  }
  constexpr std::int64_t kMostEntries = std::int64_t{1} << 40;
  const std::int64_t a_node = std::int64_t{bins.features} * problem.bin_count;
  if (a_node > 0 && problem.nodes > kMostEntries / a_node) return bad("nodes: more than 2^40 entries in all");
  if (bins.rows > 0 && bins.features > 0 && bins.data == nullptr) return bad("bins: null pointer");
  if (bins.rows > 0 && problem.gradients == nullptr) return bad("gradients: null pointer");
  if (bins.rows > 0 && problem.nodes == 0 && problem.node_ids == nullptr) {
    return bad("nodes: 0, and without node_ids all rows are in node 0");
  }
  return check_arrays(out, problem.nodes * a_node, "out");
}

Status check_splits(const SplitProblem& problem, const Split* out) {
  if (problem.nodes < 0) return bad("nodes must not be negative: " + std::to_string(problem.nodes));
  if (problem.features < 0) return bad("features must not be negative: " + std::to_string(problem.features));
  if (problem.bin_count < 1 || problem.bin_count > 65536) {
    return bad("bin_count must be from 1 to 65536: " + std::to_string(problem.bin_count));
  }
  if (problem.top_k < 1) return bad("top_k must be at least 1: " + std::to_string(problem.top_k));
  const SplitRules& rules = problem.rules;
  for (const Status& status :
       {check_parameter(rules.lambda_l1, "lambda_l1"), check_parameter(rules.lambda_l2, "lambda_l2"),
        check_parameter(rules.min_data_in_leaf, "min_data_in_leaf"),
        check_parameter(rules.min_sum_hessian_in_leaf, "min_sum_hessian_in_leaf"),
        check_parameter(rules.min_gain_to_split, "min_gain_to_split"),
        check_parameter(rules.max_delta_step, "max_delta_step"),
        check_parameter(rules.path_smooth, "path_smooth"),
        check_parameter(rules.max_cat_to_onehot, "max_cat_to_onehot"),
        check_parameter(rules.max_cat_threshold, "max_cat_threshold"),
        check_parameter(rules.min_data_per_group, "min_data_per_group"),
        check_parameter(rules.cat_smooth, "cat_smooth"), check_parameter(rules.cat_l2, "cat_l2")}) {
    if (!status.ok()) return status;
  }
  const std::int64_t entries = std::int64_t{problem.nodes} * problem.features * problem.bin_count;
  if (Status status = check_arrays(problem.histogram, entries, "histogram"); !status.ok()) return status;
  if (problem.nodes > 0 && out == nullptr) return bad("out: null pointer");
  return {};
}

Status check_feature_rules(const SplitProblem& problem) {
  if (problem.feature_rules == nullptr) return {};
  for (std::int32_t f = 0; f < problem.features; ++f) {
    const FeatureRules& rules = problem.feature_rules[f];
    const std::string at = "feature_rules: feature " + std::to_string(f) + ", ";
    if (rules.bins < 0 || rules.bins > problem.bin_count) {
      return bad(at + "bins must be from 0 to bin_count, " + std::to_string(problem.bin_count) + ": " +
                     std::to_string(rules.bins),
                 f);
    }
    if (rules.has_missing != 0 && rules.bins == 0) return bad(at + "has_missing, but no bins", f);
    if (rules.monotone < -1 || rules.monotone > 1) {
      return bad(at + "monotone must be -1, 0 or 1: " + std::to_string(rules.monotone), f);
    }
    if (rules.kind != FeatureKind::categorical) continue;
    if (rules.monotone != 0) return bad(at + "a categorical feature cannot be monotone", f);
    if (rules.bins > kMostCategories) {
      return bad(at + "a categorical feature has at most " + std::to_string(kMostCategories) + " bins, not " +
                     std::to_string(rules.bins),
                 f);
    }
  }
  if (problem.output_bounds == nullptr) return {};
  for (std::int64_t n = 0; n < problem.nodes; ++n) {
    if (problem.output_bounds[2 * n] <= problem.output_bounds[2 * n + 1]) continue;
    return bad("output_bounds: node " + std::to_string(n) + ", the lower one must not exceed the upper one",
               n);
  }
  return {};
}

Status find_gradient_fault(const GradientProblem& problem, const GradientGrid* given) {
  for (std::int64_t i = 0; i < problem.rows; ++i) {
    const double g = element(problem.gradients, i);
    const double h = element(problem.hessians, i);
    const std::string at = "position " + std::to_string(i) + " is ";
    if (!std::isfinite(g))
      return fault(StatusCode::not_finite, "gradients must be finite: " + at + text(g), -1, i);
    if (!std::isfinite(h))
      return fault(StatusCode::not_finite, "hessians must be finite: " + at + text(h), -1, i);
    if (h < 0) return bad("hessians must not be negative: " + at + text(h), i);
    if (given != nullptr && !Quantizer(*given).holds(g, h)) {
      return bad("gradients: position " + std::to_string(i) + " is beyond the given grid: " + text(g) +
                     ", hessian " + text(h),
                 i);
    }
  }
  return {};
}

Status find_histogram_fault(const HistogramProblem& problem) {
  const BinMatrix& bins = problem.bins;
  const std::int64_t terms = problem.row_subset != nullptr ? problem.subset_rows : bins.rows;
  for (std::int64_t i = 0; i < terms; ++i) {
    const std::int64_t row = problem.row_subset != nullptr ? problem.row_subset[i] : i;
    if (row < 0 || row >= bins.rows) {
      return bad("row_subset: position " + std::to_string(i) + " is " + range(row, bins.rows, "rows"), i);
    }
    const std::int32_t node = problem.node_ids != nullptr ? problem.node_ids[row] : 0;
    if (node < -1 || node >= problem.nodes) {
      return bad("node_ids: position " + std::to_string(row) + " is " + range(node, problem.nodes, "nodes"),
                 row);
    }
    if (node < 0) continue;
    if (const QuantizedGradient q = problem.gradients[row]; !on_grid(q)) {
      return bad("gradients: row " + std::to_string(row) + " is " + std::to_string(q.gradient) +
                     ", hessian " + std::to_string(q.hessian) + ", beyond what quantize_gradients gives",
                 row);
    }
    for (std::int32_t f = 0; f < bins.features; ++f) {
      const std::int64_t at = row * bins.row_step + f * bins.feature_step;
      const std::int32_t bin = bins.type == BinType::uint8
                                   ? std::int32_t{static_cast<const std::uint8_t*>(bins.data)[at]}
                                   : std::int32_t{static_cast<const std::uint16_t*>(bins.data)[at]};
      if (bin < problem.bin_count) continue;
      return bad("bins: row " + std::to_string(row) + ", feature " + std::to_string(f) + " is " +
                     range(bin, problem.bin_count, "bins"),
                 row);
    }
  }
  return {};
}

Status find_count_fault(const HistogramArrays& parent, const HistogramArrays& child, std::int64_t entries) {
  for (std::int64_t i = 0; i < entries; ++i) {
    if (child.counts[i] <= parent.counts[i]) continue;
    return bad("child: entry " + std::to_string(i) + " has " + std::to_string(child.counts[i]) +
                   " rows, and its parent " + std::to_string(parent.counts[i]),
               i);
  }
  return {};
}

}  // namespace isofold::api
