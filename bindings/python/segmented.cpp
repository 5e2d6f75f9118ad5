#include "isofold/segmented.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"
#include "device.hpp"
#include "device_views.hpp"
#include "rows.hpp"

namespace isofold::python {
namespace {

SegmentValue parse_value(const std::string& name) {
  if (name == "sum") return SegmentValue::sum;
  if (name == "dot") return SegmentValue::dot;
  if (name == "norm") return SegmentValue::norm;
  throw nb::value_error(("a reduction is sum, dot or norm, not " + name).c_str());
}

// What is to be computed, a, b for dots, and the type of the values.
using HostReduction = std::tuple<std::string, Input, std::optional<Input>, std::string>;

nb::list reduce(const std::vector<HostReduction>& reductions, const std::optional<Offsets>& offsets,
                std::optional<std::int64_t> row_length, std::int64_t total, int threads,
                const std::string& backend) {
  const Rows rows = make_rows(total, offsets, row_length);
  std::vector<SegmentReduction> all;
  nb::list found;
  for (const auto& [name, a, b, type] : reductions) {
    check_size(a.size(), total, "a");
    if (b) check_size(b->size(), total, "b");
    const DataType out_type = type == "bfloat16" ? DataType::bfloat16 : parse_data_type(type);
    const Output out = make_output(out_type, rows.count);
    all.push_back({parse_value(name), view(a, "a"), view(b, "b"), {out.data, out_type}});
    found.append(out.array);
  }
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, backend, poll);
  call_without_gil(
      [&] { return segment_reductions(all.data(), static_cast<std::int64_t>(all.size()), rows, executor); });
  return found;
}

// The same in device memory, and where the values go.
using DeviceReduction = std::tuple<std::string, DeviceInput, std::optional<DeviceInput>, DeviceOutput>;

void reduce_on_device(int device, const std::vector<DeviceReduction>& reductions,
                      const std::optional<DeviceInput>& offsets, std::optional<std::int64_t> row_length,
                      std::int64_t total, const std::optional<DeviceOutput>& scratch, std::intptr_t stream) {
  const Rows rows = device_rows(device, total, offsets, row_length);
  std::vector<SegmentReduction> all;
  for (const auto& [name, a, b, out] : reductions) {
    SegmentReduction reduction{parse_value(name), device_view(a, total, device, "a"), {}, {}};
    if (b) reduction.b = device_view(*b, total, device, "b");
    reduction.out = device_view(out, rows.count, device, "out");
    all.push_back(reduction);
  }
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream_handle(stream);
  if (scratch) {
    check_place(*scratch, device, "scratch");
    executor.scratch = scratch->data();
    executor.scratch_bytes = static_cast<std::int64_t>(scratch->nbytes());
  }
  call_without_gil([&] {
    const CurrentDevice current(device);
    return segment_reductions(all.data(), static_cast<std::int64_t>(all.size()), rows, executor);
  });
}

std::int64_t scratch_bytes(std::int64_t count, std::int64_t total, std::int64_t rows, bool ragged) {
  // Only where offsets are, not what they say, is looked at.
  const std::int64_t place = 0;
  const Rows segments = ragged ? Rows::ragged_on_device(&place, rows, total)
                               : Rows::rectangle(rows, rows == 0 ? 0 : total / rows);
  std::int64_t bytes = 0;
  check(segment_reductions_scratch(segments, count, &bytes));
  return bytes;
}

}  // namespace

void bind_segmented(nb::module_& module) {
  using namespace nb::literals;
  module.def("segment_reductions", &reduce, "reductions"_a, "offsets"_a.noconvert().none(),
             "row_length"_a.none(), "total"_a, "threads"_a, "backend"_a = "cpu",
             "The values of each reduction (sum, dot or norm; a; b or None; dtype), one a segment.");
  module.def("segment_reductions_on_device", &reduce_on_device, "device"_a, "reductions"_a,
             "offsets"_a.none(), "row_length"_a.none(), "total"_a, "scratch"_a.none(), "stream"_a,
             "Enqueues reductions (sum, dot or norm; a; b or None; out) of capsules on the stream.");
  module.def("segment_scratch_bytes", &scratch_bytes, "count"_a, "total"_a, "rows"_a, "ragged"_a,
             "What segment_reductions_on_device takes as scratch.");
}

}  // namespace isofold::python
