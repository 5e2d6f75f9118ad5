// Histograms and best splits of NumPy arrays.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstring>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"
#include "isofold/best_splits.hpp"
#include "isofold/histogram.hpp"
#include "tree_rules.hpp"

namespace isofold::python {
namespace {

using Bins = nb::ndarray<nb::ro, nb::ndim<2>, nb::device::cpu>;
using Integers32 = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Exponents = std::tuple<std::int32_t, std::int32_t>;

// Bytes that Python views as what they are.
template <class T>
std::tuple<T*, nb::object> make_bytes(std::int64_t count) {
  const Output output = make_flags(count * static_cast<std::int64_t>(sizeof(T)));
  return {static_cast<T*>(output.data), output.array};
}

std::tuple<nb::object, Exponents> quantize(const Input& gradients, const std::optional<Input>& hessians,
                                           const std::optional<Exponents>& given, int threads) {
  GradientProblem problem;
  problem.rows = static_cast<std::int64_t>(gradients.size());
  problem.gradients = view(gradients, "gradients");
  problem.hessians = view(hessians, "hessians");
  if (hessians) check_size(hessians->size(), problem.rows, "hessians");
  const auto [out, array] = make_bytes<QuantizedGradient>(problem.rows);
  QuantizedGradient* quantized = out;
  GradientGrid grid;
  if (given) grid = {std::get<0>(*given), std::get<1>(*given), 0};
  const GradientGrid wanted = grid;
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, "cpu", poll);
  call_without_gil(
      [&] { return quantize_gradients(problem, given ? &wanted : nullptr, quantized, &grid, executor); });
  return {array, Exponents{grid.gradient_exponent, grid.hessian_exponent}};
}

BinMatrix bin_matrix(const Bins& bins) {
  BinMatrix matrix;
  if (bins.dtype() == nb::dtype<std::uint8_t>()) {
    matrix.type = BinType::uint8;
  } else if (bins.dtype() == nb::dtype<std::uint16_t>()) {
    matrix.type = BinType::uint16;
  } else {
    throw nb::type_error("bins must be uint8 or uint16");
  }
  if (bins.shape(1) > 0x7fffffff) throw nb::value_error("bins: too many features");
  matrix.data = bins.data();
  matrix.rows = static_cast<std::int64_t>(bins.shape(0));
  matrix.features = static_cast<std::int32_t>(bins.shape(1));
  matrix.row_step = bins.stride(0);
  matrix.feature_step = bins.stride(1);
  return matrix;
}

std::tuple<nb::object, nb::object, nb::object> build(const Bins& bins, const Integers32& quantized,
                                                     std::int32_t bin_count,
                                                     const std::optional<Integers32>& node_ids,
                                                     std::int32_t nodes, const std::optional<Offsets>& rows,
                                                     int threads) {
  HistogramProblem problem;
  problem.bins = bin_matrix(bins);
  check_size(quantized.size(), 2 * problem.bins.rows, "gradients");
  if (reinterpret_cast<std::uintptr_t>(quantized.data()) % alignof(QuantizedGradient) != 0) {
    throw nb::value_error("gradients: quantised ones must be aligned to 8 bytes");
  }
  problem.gradients = reinterpret_cast<const QuantizedGradient*>(quantized.data());
  problem.bin_count = bin_count;
  problem.nodes = nodes;
  if (node_ids) {
    check_size(node_ids->size(), problem.bins.rows, "node_ids");
    problem.node_ids = node_ids->data();
  }
  if (rows) {
    problem.row_subset = rows->data();
    problem.subset_rows = static_cast<std::int64_t>(rows->size());
  }
  if (nodes < 0 || bin_count < 1 || bin_count > 65536) {
    throw nb::value_error("nodes must not be negative, and bin_count from 1 to 65536");
  }
  const std::int64_t a_node = std::int64_t{problem.bins.features} * bin_count;
  if (a_node > 0 && nodes > (std::int64_t{1} << 40) / a_node) {
    throw nb::value_error("nodes: more than 2^40 entries in all");
  }
  const std::int64_t entries = nodes * a_node;
  const Output gradients = make_integers(entries);
  const Output hessians = make_integers(entries);
  const auto [counts, counts_array] = make_bytes<std::int32_t>(entries);
  const HistogramArrays out{static_cast<std::int64_t*>(gradients.data),
                            static_cast<std::int64_t*>(hessians.data), counts};
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, "cpu", poll);
  call_without_gil([&] { return histogram(problem, out, executor); });
  return {gradients.array, hessians.array, counts_array};
}

std::tuple<nb::object, nb::object> search(const Offsets& gradients, const Offsets& hessians,
                                          const Integers32& counts, const Exponents& grid, std::int32_t nodes,
                                          std::int32_t features, std::int32_t bin_count,
                                          const std::optional<Flags>& feature_rules,
                                          const std::optional<Flags>& feature_mask,
                                          const std::optional<Doubles>& parent_outputs,
                                          const std::optional<Doubles>& output_bounds,
                                          const std::optional<Offsets>& node_numbers, const nb::dict& rules,
                                          std::int32_t top_k, bool want_bins, int threads) {
  if (nodes < 0 || features < 0 || bin_count < 1 || top_k < 1) {
    throw nb::value_error("nodes, features, bin_count and top_k: a negative size");
  }
  const std::int64_t entries = std::int64_t{nodes} * features * bin_count;
  check_size(gradients.size(), entries, "histogram.gradients");
  check_size(hessians.size(), entries, "histogram.hessians");
  check_size(counts.size(), entries, "histogram.counts");
  SplitProblem problem;
  // Only read.
  problem.histogram = {const_cast<std::int64_t*>(gradients.data()),
                       const_cast<std::int64_t*>(hessians.data()), const_cast<std::int32_t*>(counts.data())};
  problem.grid = {std::get<0>(grid), std::get<1>(grid), 0};
  problem.nodes = nodes;
  problem.features = features;
  problem.bin_count = bin_count;
  std::vector<FeatureRules> of_features;
  if (feature_rules) {
    of_features = unpack_feature_rules(feature_rules->data(), feature_rules->size(), features);
    problem.feature_rules = of_features.data();
  }
  if (feature_mask) {
    check_size(feature_mask->size(), std::int64_t{nodes} * features, "feature_mask");
    problem.feature_mask = feature_mask->data();
  }
  if (parent_outputs) {
    check_size(parent_outputs->size(), nodes, "parent_outputs");
    problem.parent_outputs = parent_outputs->data();
  }
  if (output_bounds) {
    check_size(output_bounds->size(), 2 * std::int64_t{nodes}, "output_bounds");
    problem.output_bounds = output_bounds->data();
  }
  if (node_numbers) {
    check_size(node_numbers->size(), nodes, "node_numbers");
    problem.node_numbers = node_numbers->data();
  }
  problem.rules = unpack_rules(rules);
  problem.top_k = top_k;
  const std::int64_t found = std::int64_t{nodes} * top_k;
  const auto [splits, splits_array] = make_bytes<Split>(found);
  Split* out = splits;
  std::uint32_t* left_bins = nullptr;
  nb::object bins_array = nb::none();
  if (want_bins) std::tie(left_bins, bins_array) = make_bytes<std::uint32_t>(found * ((bin_count + 31) / 32));
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, "cpu", poll);
  call_without_gil([&] { return best_splits(problem, out, left_bins, executor); });
  return {splits_array, bins_array};
}

}  // namespace

std::vector<FeatureRules> unpack_feature_rules(const std::uint8_t* bytes, std::size_t size,
                                               std::int32_t features) {
  static_assert(sizeof(FeatureRules) == 8, "as isofold._splits packs them");
  check_size(size, 8 * std::int64_t{features}, "feature_rules");
  std::vector<FeatureRules> result(static_cast<std::size_t>(features));
  for (std::size_t f = 0; f < result.size(); ++f) {
    const std::uint8_t* from = bytes + 8 * f;
    std::memcpy(&result[f].bins, from, 4);
    result[f].kind = from[4] != 0 ? FeatureKind::categorical : FeatureKind::numerical;
    result[f].has_missing = from[5];
    std::memcpy(&result[f].monotone, from + 6, 1);
  }
  return result;
}

SplitRules unpack_rules(const nb::dict& rules) {
  SplitRules result;
  const auto take = [&]<class T>(const char* name, T& value) { value = nb::cast<T>(rules[name]); };
  take("lambda_l1", result.lambda_l1);
  take("lambda_l2", result.lambda_l2);
  take("min_data_in_leaf", result.min_data_in_leaf);
  take("min_sum_hessian_in_leaf", result.min_sum_hessian_in_leaf);
  take("min_gain_to_split", result.min_gain_to_split);
  take("max_delta_step", result.max_delta_step);
  take("path_smooth", result.path_smooth);
  take("max_cat_to_onehot", result.max_cat_to_onehot);
  take("max_cat_threshold", result.max_cat_threshold);
  take("min_data_per_group", result.min_data_per_group);
  take("cat_smooth", result.cat_smooth);
  take("cat_l2", result.cat_l2);
  take("extra_trees", result.extra_trees);
  take("extra_seed", result.extra_seed);
  const auto ties = nb::cast<std::string>(rules["ties"]);
  if (ties == "lowest") {
    result.ties = TiePolicy::lowest;
  } else if (ties == "highest") {
    result.ties = TiePolicy::highest;
  } else if (ties == "middle") {
    result.ties = TiePolicy::middle;
  } else if (ties == "lightgbm") {
    result.ties = TiePolicy::lightgbm;
  } else {
    throw nb::value_error(("ties must be lowest, highest, middle or lightgbm, not " + ties).c_str());
  }
  return result;
}

void bind_trees(nb::module_& module) {
  using namespace nb::literals;
  module.def("quantize_gradients", &quantize, "gradients"_a.noconvert(), "hessians"_a.noconvert().none(),
             "grid"_a.none(), "threads"_a,
             "(pairs of int32 as bytes, exponents of the grid's gradients and hessians).");
  module.def("histogram", &build, "bins"_a.noconvert(), "gradients"_a.noconvert(), "bin_count"_a,
             "node_ids"_a.noconvert().none(), "nodes"_a, "rows"_a.noconvert().none(), "threads"_a,
             "(sums of gradients, of hessians, counts: int32 as bytes), flat.");
  module.def("best_splits", &search, "gradients"_a.noconvert(), "hessians"_a.noconvert(),
             "counts"_a.noconvert(), "grid"_a, "nodes"_a, "features"_a, "bin_count"_a,
             "feature_rules"_a.noconvert().none(), "feature_mask"_a.noconvert().none(),
             "parent_outputs"_a.noconvert().none(), "output_bounds"_a.noconvert().none(),
             "node_numbers"_a.noconvert().none(), "rules"_a, "top_k"_a, "want_bins"_a, "threads"_a,
             "(records of splits, sets of left bins or None), as bytes.");
}

}  // namespace isofold::python
