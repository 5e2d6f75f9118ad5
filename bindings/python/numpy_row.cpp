// One plain row of NumPy's, at the least cost: its arrays are read by NumPy's array interface
// (__array_struct__), and made by NumPy, which takes a third of the time of handing over memory of ours.
#include <nanobind/nanobind.h>

#include <cstdint>

#include "bindings.hpp"
#include "call.hpp"
#include "isofold/isotonic.hpp"

namespace isofold::python {
namespace {

// As NumPy documents it.
struct ArrayInterface {
  int two;
  int dimensions;
  char kind;
  int item_size;
  int flags;
  const Py_ssize_t* shape;
  const Py_ssize_t* strides;
  void* data;
};
constexpr int kContiguous = 0x1;
constexpr int kAligned = 0x100;
constexpr int kNativeOrder = 0x200;

// Of one dimension in order, else nullptr. NumPy keeps it alive with the capsule.
const ArrayInterface* plain_row(const nb::object& capsule) {
  const auto* array = static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (array == nullptr) throw nb::python_error();
  constexpr int kPlain = kContiguous | kAligned | kNativeOrder;
  return array->two == 2 && array->dimensions == 1 && (array->flags & kPlain) == kPlain ? array : nullptr;
}

// False: not such a row, or one that cannot be fitted.
bool fit_row(nb::handle y, bool increasing, nb::handle fit, nb::handle block_starts) {
  const nb::object capsules[] = {y.attr("__array_struct__"), fit.attr("__array_struct__"),
                                 block_starts.attr("__array_struct__")};
  const ArrayInterface* values = plain_row(capsules[0]);
  const ArrayInterface* fitted = plain_row(capsules[1]);
  const ArrayInterface* starts = plain_row(capsules[2]);
  if (values == nullptr || fitted == nullptr || starts == nullptr) return false;
  const Py_ssize_t size = values->shape[0];
  if (values->kind != 'f' || (values->item_size != 4 && values->item_size != 8) || size == 0 ||
      fitted->kind != 'f' || fitted->item_size != values->item_size || fitted->shape[0] != size ||
      starts->item_size != 1 || starts->shape[0] != size) {
    return false;
  }
  const DataType type = values->item_size == 4 ? DataType::float32 : DataType::float64;
  IsotonicProblem problem;
  problem.values = {values->data, type};
  problem.rows = Rows::single(size);
  problem.increasing = increasing;
  SignalPoll poll;
  Executor executor;
  executor.should_stop = &SignalPoll::should_stop;
  executor.should_stop_context = &poll;
  Status status;
  {
    const nb::gil_scoped_release release;
    status = isotonic_regression(
        problem, {MutableArray{fitted->data, type}, static_cast<std::uint8_t*>(starts->data)}, executor);
  }
  return check_data(status);
}

}  // namespace

void bind_numpy_row(nb::module_& module) {
  using namespace nb::literals;
  module.def("fit_row", &fit_row, "y"_a, "increasing"_a, "fit"_a, "block_starts"_a,
             "Fits one row of float32 or float64, where all are plain NumPy arrays; else answers False.");
}

}  // namespace isofold::python
