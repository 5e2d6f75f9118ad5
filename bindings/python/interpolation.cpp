#include "isofold/interpolation.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"

namespace isofold::python {
namespace {

nb::object interpolate_points(const Doubles& knots_x, const Doubles& knots_y, const Input& points,
                              const std::optional<std::string>& out_dtype, int threads) {
  check_size(knots_y.size(), static_cast<std::int64_t>(knots_x.size()), "knots_y");
  const ConstArray point_view = view(points, "points");
  const Knots knots{knots_x.data(), knots_y.data(), static_cast<std::int64_t>(knots_x.size())};
  const auto count = static_cast<std::int64_t>(points.size());
  const DataType out_type = out_dtype ? parse_data_type(*out_dtype) : point_view.type;
  const Output out = make_output(out_type, count);
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, "cpu", poll);
  call_without_gil(
      [&] { return interpolate(knots, point_view, count, MutableArray{out.data, out_type}, executor); });
  return out.array;
}

}  // namespace

void bind_interpolation(nb::module_& module) {
  using namespace nb::literals;
  module.def("interpolate", &interpolate_points, "knots_x"_a.noconvert(), "knots_y"_a.noconvert(),
             "points"_a.noconvert(), "out_dtype"_a = nb::none(), "threads"_a = 0,
             "The piecewise linear curve through the knots at the points, rounded once; constant outside.");
}

}  // namespace isofold::python
