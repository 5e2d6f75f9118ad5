#include "cuda/tree_problem.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda/device_array.hpp"

namespace isofold_test {
namespace {

using isofold::BinType;
using isofold::ConstArray;
using isofold::DataType;
using isofold::Executor;

void demand(const isofold::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.message.c_str());
  std::exit(2);
}

std::vector<float> narrow(const std::vector<double>& values) { return {values.begin(), values.end()}; }

std::size_t entries(const TreeProblem& problem) {
  return static_cast<std::size_t>(problem.nodes) * static_cast<std::size_t>(problem.features) *
         static_cast<std::size_t>(problem.bin_count);
}
std::size_t found_splits(const TreeProblem& problem) {
  return static_cast<std::size_t>(problem.nodes) * static_cast<std::size_t>(problem.top_k);
}
std::size_t words(const TreeProblem& problem) {
  return found_splits(problem) * static_cast<std::size_t>((problem.bin_count + 31) / 32);
}

isofold::BinMatrix matrix(const TreeProblem& problem, const std::uint8_t* data) {
  const BinType type = problem.wide_bins ? BinType::uint16 : BinType::uint8;
  return problem.row_major ? isofold::BinMatrix::row_major(data, type, problem.rows, problem.features)
                           : isofold::BinMatrix::column_major(data, type, problem.rows, problem.features);
}

isofold::SplitProblem split_problem(const TreeProblem& problem) {
  isofold::SplitProblem split;
  split.nodes = problem.nodes;
  split.features = problem.features;
  split.bin_count = problem.bin_count;
  split.rules = problem.rules;
  split.top_k = problem.top_k;
  return split;
}

template <class T>
const T* or_null(const std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}
template <class T>
const T* or_null(const DeviceArray<T>& values) {
  return values.count() == 0 ? nullptr : values.data();
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace

TreeResult tree_on_cpu(const TreeProblem& problem) {
  TreeResult result;
  Executor executor;
  executor.threads = 1;
  const std::vector<float> single_gradients = narrow(problem.gradients);
  const std::vector<float> single_hessians = narrow(problem.hessians);
  isofold::GradientProblem gradients;
  gradients.rows = problem.rows;
  if (problem.single_gradients) {
    gradients.gradients = single_gradients.data();
    if (!problem.hessians.empty()) gradients.hessians = single_hessians.data();
  } else {
    gradients.gradients = problem.gradients.data();
    if (!problem.hessians.empty()) gradients.hessians = problem.hessians.data();
  }
  result.quantized.resize(static_cast<std::size_t>(problem.rows));
  demand(isofold::quantize_gradients(gradients, nullptr, result.quantized.data(), &result.grid, executor),
         "gradients on the CPU");
  const std::vector<std::uint8_t> bins = laid_out(problem);
  isofold::HistogramProblem histogram;
  histogram.bins = matrix(problem, bins.data());
  histogram.gradients = result.quantized.data();
  histogram.bin_count = problem.bin_count;
  histogram.node_ids = or_null(problem.node_ids);
  histogram.nodes = problem.nodes;
  if (problem.has_subset) {
    histogram.row_subset = problem.subset.data();
    histogram.subset_rows = static_cast<std::int64_t>(problem.subset.size());
  }
  result.gradients.resize(entries(problem));
  result.hessians.resize(entries(problem));
  result.counts.resize(entries(problem));
  const isofold::HistogramArrays out{result.gradients.data(), result.hessians.data(), result.counts.data()};
  demand(isofold::histogram(histogram, out, executor), "histogram on the CPU");
  isofold::SplitProblem split = split_problem(problem);
  split.histogram = out;
  split.grid = result.grid;
  split.feature_rules = or_null(problem.feature_rules);
  split.feature_mask = or_null(problem.mask);
  split.parent_outputs = or_null(problem.parent_outputs);
  split.output_bounds = or_null(problem.output_bounds);
  split.node_numbers = or_null(problem.node_numbers);
  result.splits.resize(found_splits(problem));
  result.left_bins.resize(words(problem));
  demand(isofold::best_splits(split, result.splits.data(), result.left_bins.data(), executor),
         "splits on the CPU");
  return result;
}

TreeResult tree_on_device(const TreeProblem& problem) {
  Executor executor;
  executor.backend = isofold::Backend::cuda;
  const DeviceArray<double> doubles(problem.gradients);
  const DeviceArray<float> floats(narrow(problem.gradients));
  const DeviceArray<double> double_hessians(problem.hessians);
  const DeviceArray<float> float_hessians(narrow(problem.hessians));
  isofold::GradientProblem gradients;
  gradients.rows = problem.rows;
  gradients.gradients = problem.single_gradients ? ConstArray(floats.data()) : ConstArray(doubles.data());
  if (!problem.hessians.empty()) {
    gradients.hessians =
        problem.single_gradients ? ConstArray(float_hessians.data()) : ConstArray(double_hessians.data());
  }
  const DeviceArray<isofold::QuantizedGradient> quantized(problem.rows);
  const DeviceArray<isofold::GradientGrid> grid(1);
  demand(isofold::quantize_gradients(gradients, nullptr, quantized.data(), grid.data(), executor),
         "gradients on the device");
  const DeviceArray<std::uint8_t> bins(laid_out(problem));
  const DeviceArray<std::int32_t> node_ids(problem.node_ids);
  const DeviceArray<std::int64_t> subset(problem.subset);
  isofold::HistogramProblem histogram;
  histogram.bins = matrix(problem, bins.data());
  histogram.gradients = quantized.data();
  histogram.bin_count = problem.bin_count;
  histogram.node_ids = or_null(node_ids);
  histogram.nodes = problem.nodes;
  if (problem.has_subset) {
    histogram.row_subset = subset.data();
    histogram.subset_rows = subset.count();
  }
  const auto size = static_cast<std::int64_t>(entries(problem));
  const DeviceArray<std::int64_t> gradient_sums(size);
  const DeviceArray<std::int64_t> hessian_sums(size);
  const DeviceArray<std::int32_t> counts(size);
  const DeviceArray<std::int32_t> fault(1);
  const isofold::HistogramArrays out{gradient_sums.data(), hessian_sums.data(), counts.data()};
  demand(isofold::histogram(histogram, out, executor, fault.data()), "histogram on the device");
  const DeviceArray<isofold::FeatureRules> feature_rules(problem.feature_rules);
  const DeviceArray<std::uint8_t> mask(problem.mask);
  const DeviceArray<double> parent_outputs(problem.parent_outputs);
  const DeviceArray<double> output_bounds(problem.output_bounds);
  const DeviceArray<std::int64_t> node_numbers(problem.node_numbers);
  isofold::SplitProblem split = split_problem(problem);
  split.histogram = out;
  split.device_grid = grid.data();
  split.feature_rules = or_null(feature_rules);
  split.feature_mask = or_null(mask);
  split.parent_outputs = or_null(parent_outputs);
  split.output_bounds = or_null(output_bounds);
  split.node_numbers = or_null(node_numbers);
  const DeviceArray<isofold::Split> splits(static_cast<std::int64_t>(found_splits(problem)));
  const DeviceArray<std::uint32_t> left_bins(static_cast<std::int64_t>(words(problem)));
  demand(isofold::best_splits(split, splits.data(), left_bins.data(), executor), "splits on the device");
  TreeResult result{quantized.host(), grid.host()[0], gradient_sums.host(), hessian_sums.host(),
                    counts.host(),    splits.host(),  left_bins.host()};
  const bool intact = quantized.margins_intact() && grid.margins_intact() && gradient_sums.margins_intact() &&
                      hessian_sums.margins_intact() && counts.margins_intact() && splits.margins_intact() &&
                      left_bins.margins_intact();
  if (!intact || fault.host()[0] != 0) result.grid.fault = 77;  // no result is like it
  return result;
}

std::string difference(const TreeResult& found, const TreeResult& expected) {
  if (found.grid.fault == 77) return "a fault, or memory beside the outputs";
  if (std::memcmp(&found.grid, &expected.grid, sizeof found.grid) != 0) return "grid";
  if (!same(found.quantized, expected.quantized)) return "quantised gradients";
  if (found.counts != expected.counts) return "counts";
  if (found.gradients != expected.gradients) return "gradient sums";
  if (found.hessians != expected.hessians) return "hessian sums";
  for (std::size_t i = 0; i < expected.splits.size(); ++i) {
    const isofold::Split& a = found.splits[i];
    const isofold::Split& b = expected.splits[i];
    if (std::memcmp(&a, &b, sizeof a) == 0) continue;
    char text[200];
    std::snprintf(text, sizeof text,
                  "split %zu: feature %d bin %d [%d, %d] gain %a margin %a, not %d %d [%d, %d] %a %a", i,
                  a.feature, a.bin, a.plateau_first, a.plateau_last, a.gain, a.margin, b.feature, b.bin,
                  b.plateau_first, b.plateau_last, b.gain, b.margin);
    return text;
  }
  if (found.left_bins != expected.left_bins) return "sets of categories";
  return {};
}

}  // namespace isofold_test
