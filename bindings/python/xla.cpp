#include "xla.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <string>

#include "bindings.hpp"
#include "call.hpp"
#include "isofold/isotonic.hpp"

namespace isofold::python {
namespace {

nb::dict handlers(const std::string& platform) {
  if (platform != "cpu" && platform != "CUDA") {
    throw nb::value_error(("platform must be cpu or CUDA, not " + platform).c_str());
  }
  const XlaHandlers given = platform == "cpu" ? xla_handlers_on_host() : xla_handlers_on_device();
  nb::dict found;
  found["isofold_fit"] = nb::capsule(given.fit);
  found["isofold_gradient"] = nb::capsule(given.gradient);
  return found;
}

DataType named_type(const std::string& name, const char* argument) {
  if (name == "float16") return DataType::float16;
  if (name == "bfloat16") return DataType::bfloat16;
  if (name == "float32") return DataType::float32;
  if (name == "float64") return DataType::float64;
  throw nb::type_error((std::string(argument) + ": no floating type of isofold's: " + name).c_str());
}

// Nothing is read from arrays: there are none yet, and any address will do.
std::int64_t scratch_bytes(const std::string& call, const std::string& values,
                           const std::optional<std::string>& weights, std::int64_t total, std::int64_t rows,
                           bool ragged) {
  static constexpr std::int64_t somewhere = 0;
  if (call != "fit" && call != "gradient") {
    throw nb::value_error(("call must be fit or gradient, not " + call).c_str());
  }
  IsotonicProblem problem;
  problem.values = {&somewhere, named_type(values, "values")};
  if (weights) problem.weights = {&somewhere, named_type(*weights, "weights")};
  problem.rows = ragged ? Rows::ragged_on_device(&somewhere, rows, total)
                        : Rows::rectangle(rows, rows == 0 ? 0 : total / rows);
  std::int64_t bytes = 0;
  check(call == "fit" ? isotonic_regression_scratch(problem, &bytes)
                      : isotonic_gradient_scratch(problem, &bytes));
  return bytes + static_cast<std::int64_t>(kXlaScratchAlignment);
}

}  // namespace

void bind_xla(nb::module_& module) {
  using namespace nb::literals;
  module.def("xla_ffi_version", &xla_ffi_version,
             "The version of XLA's interface that the custom calls speak; empty in a build without them.");
  module.def("xla_handlers", &handlers, "platform"_a,
             "The custom calls for XLA's platform cpu or CUDA: capsules by name.");
  module.def("xla_scratch_bytes", &scratch_bytes, "call"_a, "values"_a, "weights"_a.none(), "total"_a,
             "rows"_a, "ragged"_a,
             "The bytes of scratch that the CUDA custom call fit or gradient takes as its last result.");
}

}  // namespace isofold::python
