// Histograms and best splits of arrays in device memory, as DLPack capsules that are ordered on the call's
// stream. Everything is enqueued there; nothing is waited for.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"
#include "device.hpp"
#include "isofold/best_splits.hpp"
#include "isofold/histogram.hpp"
#include "tree_rules.hpp"

namespace isofold::python {
namespace {

using DeviceInput = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig>;
using DeviceOutput = nb::ndarray<nb::ndim<1>, nb::c_contig>;
using DeviceBins = nb::ndarray<nb::ro, nb::ndim<2>>;
using Optional = std::optional<DeviceInput>;

constexpr int kCuda = 2;  // DLPack's numbers
constexpr int kCudaManaged = 13;

template <class Array>
void check_place(const Array& array, int device, const char* name) {
  if ((array.device_type() == kCuda || array.device_type() == kCudaManaged) && array.device_id() == device) {
    return;
  }
  throw nb::value_error((std::string(name) + " is not on CUDA device " + std::to_string(device)).c_str());
}

template <class T, class Array>
T* typed(const Array& array, int device, std::int64_t size, const char* name) {
  check_place(array, device, name);
  check_size(array.size(), size, name);
  if (array.dtype() != nb::dtype<std::remove_const_t<T>>()) {
    throw nb::type_error((std::string(name) + " has another element type").c_str());
  }
  return static_cast<T*>(array.data());
}

template <class T>
const T* typed(const Optional& array, int device, std::int64_t size, const char* name) {
  return array ? typed<const T>(*array, device, size, name) : nullptr;
}

// Records as bytes.
template <class T>
void check_alignment(const void* pointer, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % alignof(T) == 0) return;
  const std::string text = std::string(name) + " must be aligned to " + std::to_string(alignof(T)) + " bytes";
  throw nb::value_error(text.c_str());
}
template <class T>
const T* records(const DeviceInput& array, int device, std::int64_t count, const char* name) {
  const auto size = count * static_cast<std::int64_t>(sizeof(T));
  const auto* bytes = typed<const std::uint8_t>(array, device, size, name);
  check_alignment<T>(bytes, name);
  return reinterpret_cast<const T*>(bytes);
}
template <class T>
T* records(const DeviceOutput& array, int device, std::int64_t count, const char* name) {
  auto* bytes = typed<std::uint8_t>(array, device, count * static_cast<std::int64_t>(sizeof(T)), name);
  check_alignment<T>(bytes, name);
  return reinterpret_cast<T*>(bytes);
}

Executor on(std::intptr_t stream) {
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr): as DLPack has it
  return executor;
}

ConstArray floats(const DeviceInput& array, int device, std::int64_t size, const char* name) {
  check_place(array, device, name);
  check_size(array.size(), size, name);
  return {array.data(), data_type(array.dtype(), name)};
}

void quantize(int device, const DeviceInput& gradients, const Optional& hessians, const Optional& given,
              const DeviceOutput& out, const DeviceOutput& grid, std::intptr_t stream) {
  GradientProblem problem;
  problem.rows = static_cast<std::int64_t>(gradients.size());
  problem.gradients = floats(gradients, device, problem.rows, "gradients");
  if (hessians) problem.hessians = floats(*hessians, device, problem.rows, "hessians");
  const GradientGrid* wanted = given ? records<GradientGrid>(*given, device, 1, "grid") : nullptr;
  auto* quantized = records<QuantizedGradient>(out, device, problem.rows, "out");
  auto* chosen = records<GradientGrid>(grid, device, 1, "grid");
  call_without_gil([&] {
    const CurrentDevice current(device);
    return quantize_gradients(problem, wanted, quantized, chosen, on(stream));
  });
}

void build(int device, const DeviceBins& bins, const DeviceInput& quantized, std::int32_t bin_count,
           const Optional& node_ids, std::int32_t nodes, const Optional& rows, const DeviceOutput& gradients,
           const DeviceOutput& hessians, const DeviceOutput& counts, const DeviceOutput& fault,
           std::intptr_t stream) {
  HistogramProblem problem;
  check_place(bins, device, "bins");
  if (bins.dtype() != nb::dtype<std::uint8_t>() && bins.dtype() != nb::dtype<std::uint16_t>()) {
    throw nb::type_error("bins must be uint8 or uint16");
  }
  problem.bins.type = bins.dtype() == nb::dtype<std::uint8_t>() ? BinType::uint8 : BinType::uint16;
  problem.bins.data = bins.data();
  problem.bins.rows = static_cast<std::int64_t>(bins.shape(0));
  problem.bins.features = static_cast<std::int32_t>(bins.shape(1));
  problem.bins.row_step = bins.stride(0);
  problem.bins.feature_step = bins.stride(1);
  problem.gradients = records<QuantizedGradient>(quantized, device, problem.bins.rows, "gradients");
  problem.bin_count = bin_count;
  problem.node_ids = typed<std::int32_t>(node_ids, device, problem.bins.rows, "node_ids");
  problem.nodes = nodes;
  if (rows) {
    problem.subset_rows = static_cast<std::int64_t>(rows->size());
    problem.row_subset = typed<const std::int64_t>(*rows, device, problem.subset_rows, "rows");
  }
  const std::int64_t entries = std::int64_t{nodes} * problem.bins.features * bin_count;
  const HistogramArrays out{typed<std::int64_t>(gradients, device, entries, "gradients"),
                            typed<std::int64_t>(hessians, device, entries, "hessians"),
                            typed<std::int32_t>(counts, device, entries, "counts")};
  auto* faulty = typed<std::int32_t>(fault, device, 1, "fault");
  call_without_gil([&] {
    const CurrentDevice current(device);
    return histogram(problem, out, on(stream), faulty);
  });
}

void search(int device, const DeviceInput& gradients, const DeviceInput& hessians, const DeviceInput& counts,
            const DeviceInput& grid, std::int32_t nodes, std::int32_t features, std::int32_t bin_count,
            const Optional& feature_rules, const Optional& feature_mask, const Optional& parent_outputs,
            const Optional& output_bounds, const Optional& node_numbers, const nb::dict& rules,
            std::int32_t top_k, const DeviceOutput& out, const std::optional<DeviceOutput>& left_bins,
            std::intptr_t stream) {
  if (nodes < 0 || features < 0 || bin_count < 1 || top_k < 1) {
    throw nb::value_error("nodes, features, bin_count and top_k: a negative size");
  }
  const std::int64_t entries = std::int64_t{nodes} * features * bin_count;
  const std::int64_t found = std::int64_t{nodes} * top_k;
  SplitProblem problem;
  // Only read.
  problem.histogram = {
      const_cast<std::int64_t*>(typed<const std::int64_t>(gradients, device, entries, "histogram.gradients")),
      const_cast<std::int64_t*>(typed<const std::int64_t>(hessians, device, entries, "histogram.hessians")),
      const_cast<std::int32_t*>(typed<const std::int32_t>(counts, device, entries, "histogram.counts"))};
  problem.device_grid = records<GradientGrid>(grid, device, 1, "grid");
  problem.nodes = nodes;
  problem.features = features;
  problem.bin_count = bin_count;
  if (feature_rules) {
    problem.feature_rules = records<FeatureRules>(*feature_rules, device, features, "feature_rules");
  }
  problem.feature_mask =
      typed<std::uint8_t>(feature_mask, device, std::int64_t{nodes} * features, "feature_mask");
  problem.parent_outputs = typed<double>(parent_outputs, device, nodes, "parent_outputs");
  problem.output_bounds = typed<double>(output_bounds, device, 2 * std::int64_t{nodes}, "output_bounds");
  problem.node_numbers = typed<std::int64_t>(node_numbers, device, nodes, "node_numbers");
  problem.rules = unpack_rules(rules);
  problem.top_k = top_k;
  auto* splits = records<Split>(out, device, found, "out");
  std::uint32_t* words = nullptr;
  if (left_bins)
    words = records<std::uint32_t>(*left_bins, device, found * ((bin_count + 31) / 32), "left_bins");
  call_without_gil([&] {
    const CurrentDevice current(device);
    return best_splits(problem, splits, words, on(stream));
  });
}

}  // namespace

void bind_device_trees(nb::module_& module) {
  using namespace nb::literals;
  module.def("device_quantize_gradients", &quantize, "device"_a, "gradients"_a, "hessians"_a.none(),
             "given"_a.none(), "out"_a, "grid"_a, "stream"_a, "As quantize_gradients, into the outputs.");
  module.def("device_histogram", &build, "device"_a, "bins"_a, "quantized"_a, "bin_count"_a,
             "node_ids"_a.none(), "nodes"_a, "rows"_a.none(), "gradients"_a, "hessians"_a, "counts"_a,
             "fault"_a, "stream"_a, "As histogram, into the outputs.");
  module.def("device_best_splits", &search, "device"_a, "gradients"_a, "hessians"_a, "counts"_a, "grid"_a,
             "nodes"_a, "features"_a, "bin_count"_a, "feature_rules"_a.none(), "feature_mask"_a.none(),
             "parent_outputs"_a.none(), "output_bounds"_a.none(), "node_numbers"_a.none(), "rules"_a,
             "top_k"_a, "out"_a, "left_bins"_a.none(), "stream"_a, "As best_splits, into the outputs.");
}

}  // namespace isofold::python
