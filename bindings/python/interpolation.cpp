#include "isofold/interpolation.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>

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

nb::object interpolate_curves(const Doubles& knots_x, const Doubles& knots_y, const Offsets& knot_offsets,
                              const Offsets& curve_of_point, const Input& points,
                              const std::optional<std::string>& out_dtype, int threads) {
  const auto knots = static_cast<std::int64_t>(knots_x.size());
  const auto count = static_cast<std::int64_t>(points.size());
  check_size(knots_y.size(), knots, "knots_y");
  check_size(curve_of_point.size(), count, "curve_of_point");
  const auto curves = static_cast<std::int64_t>(knot_offsets.size()) - 1;
  // Here, before anything reads a knot that an offset promises: only this side knows how many there are.
  const std::int64_t* offsets = knot_offsets.data();
  if (curves < 1 || offsets[0] != 0 || offsets[curves] != knots ||
      !std::is_sorted(offsets, offsets + curves + 1)) {
    throw nb::value_error("knot_offsets must rise from 0 to the number of knots, one entry more than curves");
  }
  const ConstArray point_view = view(points, "points");
  const DataType out_type = out_dtype ? parse_data_type(*out_dtype) : point_view.type;
  const Output out = make_output(out_type, count);
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, "cpu", poll);
  call_without_gil([&] {
    return interpolate(Curves{knots_x.data(), knots_y.data(), knot_offsets.data(), curves},
                       curve_of_point.data(), point_view, count, MutableArray{out.data, out_type}, executor);
  });
  return out.array;
}

}  // namespace

void bind_interpolation(nb::module_& module) {
  using namespace nb::literals;
  module.def("interpolate", &interpolate_points, "knots_x"_a.noconvert(), "knots_y"_a.noconvert(),
             "points"_a.noconvert(), "out_dtype"_a = nb::none(), "threads"_a = 0,
             "The piecewise linear curve through the knots at the points, rounded once; constant outside.");
  module.def("interpolate_curves", &interpolate_curves, "knots_x"_a.noconvert(), "knots_y"_a.noconvert(),
             "knot_offsets"_a.noconvert(), "curve_of_point"_a.noconvert(), "points"_a.noconvert(),
             "out_dtype"_a = nb::none(), "threads"_a = 0,
             "Curves end to end, each point on the one it names; otherwise as interpolate.");
}

}  // namespace isofold::python
