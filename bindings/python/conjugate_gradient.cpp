#include "isofold/conjugate_gradient.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"
#include "device.hpp"
#include "device_views.hpp"

namespace isofold::python {
namespace {

// In host memory (device -1) or in that of a CUDA device.
using AnyInput = DeviceInput;
using AnyOutput = DeviceOutput;

template <class Array>
void check_memory(const Array& array, int device, const char* name) {
  if (device >= 0) return check_place(array, device, name);
  if (array.device_type() != nb::device::cpu::value) {
    throw nb::value_error((std::string(name) + " is not in host memory").c_str());
  }
}

template <class T, class Array>
auto* typed(const Array& array, int device, const char* name) {
  check_memory(array, device, name);
  if (array.dtype() != nb::dtype<T>()) {
    throw nb::type_error((std::string(name) + " has the wrong type").c_str());
  }
  if constexpr (Array::ReadOnly) {
    return static_cast<const T*>(array.data());
  } else {
    return static_cast<T*>(array.data());
  }
}

ConstArray values_of(const AnyInput& array, std::int64_t size, int device) {
  check_memory(array, device, "values");
  check_size(array.size(), size, "values");
  return {array.data(), data_type(array.dtype(), "values")};
}

// A built-in map, and the arrays that it reads.
struct NativeMap {
  LinearMap map;
  std::int64_t rows = 0;
  DataType type = DataType::none;
  int device = -1;
  std::vector<nb::ndarray<>> kept;
};

Rows rows_of(int device, std::int64_t total, const std::optional<AnyInput>& offsets,
             std::optional<std::int64_t> row_length) {
  if (device >= 0) return device_rows(device, total, offsets, row_length);
  if (!offsets) {
    if (!row_length) return Rows::single(total);
    if (*row_length < 0 || (*row_length == 0 ? total != 0 : total % *row_length != 0)) {
      throw nb::value_error("row_length must divide the number of values");
    }
    return Rows::rectangle(*row_length == 0 ? 0 : total / *row_length, *row_length);
  }
  const std::int64_t* found = typed<std::int64_t>(*offsets, device, "offsets");
  const auto count = static_cast<std::int64_t>(offsets->size()) - 1;
  if (count < 0 || found[0] != 0 || found[count] != total) {
    throw nb::value_error("offsets must rise from 0 to the number of values");
  }
  return Rows::ragged(found, count);
}

// A row is read from where its offsets say, and those are the caller's.
void check_offsets(const std::int64_t* offsets, std::int64_t rows, std::int64_t entries) {
  if (rows < 0 || offsets[0] != 0 || offsets[rows] != entries ||
      !std::is_sorted(offsets, offsets + rows + 1)) {
    throw nb::value_error("offsets must rise from 0 to the number of indices");
  }
}

CompressedRows compressed_rows(const AnyInput& offsets, const AnyInput& indices, const AnyInput& values,
                               std::int64_t columns, int device) {
  CompressedRows matrix;
  matrix.rows = static_cast<std::int64_t>(offsets.size()) - 1;
  matrix.columns = columns;
  matrix.offsets = typed<std::int64_t>(offsets, device, "offsets");
  if (device < 0) check_offsets(matrix.offsets, matrix.rows, static_cast<std::int64_t>(indices.size()));
  matrix.indices = typed<std::int64_t>(indices, device, "indices");
  matrix.values = values_of(values, static_cast<std::int64_t>(indices.size()), device);
  return matrix;
}

// Handles, which count references.
template <class... Arrays>
std::vector<nb::ndarray<>> kept(const Arrays&... arrays) {
  return {nb::ndarray<>(arrays.handle())...};
}

NativeMap compressed(int device, const std::string& type, const AnyInput& offsets, const AnyInput& indices,
                     const AnyInput& values, std::int64_t columns) {
  const DataType form = parse_data_type(type);
  const CompressedRows matrix = compressed_rows(offsets, indices, values, columns, device);
  // A column beyond the unknowns would be read from behind the vector's end.
  if (matrix.rows != columns) {
    throw nb::value_error(("a matrix of conjugate gradients is square, but has " +
                           std::to_string(matrix.rows) + " rows and " + std::to_string(columns) + " columns")
                              .c_str());
  }
  return {linear_map(matrix, form), matrix.rows, form, device, kept(offsets, indices, values)};
}

NativeMap banded(int device, const std::string& type, std::int64_t width, const AnyInput& values,
                 std::int64_t total, const std::optional<AnyInput>& offsets,
                 std::optional<std::int64_t> row_length) {
  const DataType form = parse_data_type(type);
  const Banded matrix{rows_of(device, total, offsets, row_length), width,
                      values_of(values, (2 * width + 1) * total, device)};
  NativeMap found{linear_map(matrix, form), total, form, device, kept(values)};
  if (offsets) found.kept.emplace_back(offsets->handle());
  return found;
}

NativeMap blocks(int device, const std::string& type, std::int64_t size, const AnyInput& values,
                 std::int64_t rows) {
  const DataType form = parse_data_type(type);
  const BlockDiagonal matrix{rows, size, values_of(values, rows * size, device)};
  return {linear_map(matrix, form), rows, form, device, kept(values)};
}

NativeMap normal(int device, const std::string& type, const AnyInput& offsets, const AnyInput& indices,
                 const AnyInput& values, const AnyInput& offsets_t, const AnyInput& indices_t,
                 const AnyInput& values_t, double damping, const AnyOutput& between) {
  const DataType form = parse_data_type(type);
  const auto columns = static_cast<std::int64_t>(offsets_t.size()) - 1;
  const CompressedRows jacobian = compressed_rows(offsets, indices, values, columns, device);
  const CompressedRows transpose = compressed_rows(offsets_t, indices_t, values_t, jacobian.rows, device);
  check_memory(between, device, "between");
  check_size(between.size(), jacobian.rows, "between");
  if (data_type(between.dtype(), "between") != form) throw nb::type_error("between has the wrong type");
  return {normal_equations(jacobian, transpose, damping, between.data(), form), columns, form, device,
          kept(offsets, indices, values, offsets_t, indices_t, values_t, between)};
}

// What a call does: a built-in map, or a Python function of no arguments that does it on the vectors that
// both sides know.
LinearMap map_of(const nb::object& given, std::int64_t total, DataType type, int device, const char* name) {
  if (given.is_none()) return {};
  NativeMap* native = nullptr;
  if (nb::try_cast(given, native) && native != nullptr) {
    if (native->rows != total || native->type != type || native->device != device) {
      throw nb::value_error((std::string(name) + " is not for vectors of this size, type and place").c_str());
    }
    return native->map;
  }
  return [function = given.ptr()](const void*, void*, const Executor&) -> Status {
    const nb::gil_scoped_acquire acquire;
    nb::borrow(function)();
    return {};
  };
}

const double* tolerances(const std::optional<AnyInput>& array, std::int64_t count, int device,
                         const char* name) {
  if (!array) return nullptr;
  check_size(array->size(), count, name);
  return typed<double>(*array, device, name);
}

void solve(int device, const AnyInput& b, const AnyOutput& x, const AnyOutput& r, const AnyOutput& z,
           const AnyOutput& p, const AnyOutput& q, const nb::object& matrix, const nb::object& preconditioner,
           const std::optional<AnyInput>& offsets, std::optional<std::int64_t> row_length,
           const std::optional<AnyInput>& rtol, double rtol_of_all, const std::optional<AnyInput>& atol,
           double atol_of_all, const std::optional<AnyInput>& most, std::int64_t most_of_all,
           std::int64_t replace_every, std::int64_t iteration_limit, std::int64_t check_every,
           const nb::object& callback, const AnyOutput& iterations, const AnyOutput& statuses,
           const AnyOutput& residual_norm, const AnyOutput& true_residual_norm,
           const std::optional<AnyOutput>& scratch, int threads, std::intptr_t stream) {
  const auto total = static_cast<std::int64_t>(b.size());
  check_memory(b, device, "b");
  CgProblem problem;
  problem.right_side = {b.data(), data_type(b.dtype(), "b")};
  const DataType type = problem.right_side.type;
  const auto vector = [&](const AnyOutput& array, const char* name) {
    check_memory(array, device, name);
    check_size(array.size(), total, name);
    if (data_type(array.dtype(), name) != type) {
      throw nb::type_error((std::string(name) + " is not of b's type").c_str());
    }
    return array.data();
  };
  problem.systems = rows_of(device, total, offsets, row_length);
  if (!offsets && row_length && *row_length == 0) {
    // Systems without unknowns: only what is to be said of them tells how many there are.
    problem.systems = Rows::rectangle(static_cast<std::int64_t>(iterations.size()), 0);
  }
  const std::int64_t count = problem.systems.count;
  problem.matrix = map_of(matrix, total, type, device, "A");
  problem.preconditioner = map_of(preconditioner, total, type, device, "preconditioner");
  problem.rtol = tolerances(rtol, count, device, "rtol");
  problem.atol = tolerances(atol, count, device, "atol");
  problem.rtol_of_all = rtol_of_all;
  problem.atol_of_all = atol_of_all;
  if (most) {
    check_size(most->size(), count, "maxiter");
    problem.max_iterations = typed<std::int64_t>(*most, device, "maxiter");
  }
  problem.max_iterations_of_all = most_of_all;
  problem.replace_every = replace_every;
  problem.iteration_limit = iteration_limit;
  problem.check_every = check_every;
  bool stopped = false;
  if (!callback.is_none()) {
    problem.callback = [&](std::int64_t) {
      const nb::gil_scoped_acquire acquire;
      const nb::object answer = callback();
      const int truth = PyObject_IsTrue(answer.ptr());
      if (truth < 0) throw nb::python_error();  // an array of several elements has none
      stopped = truth == 1;
      return stopped;
    };
  }
  const auto by_system = [&]<class T>(const AnyOutput& array, T*, const char* name) {
    check_size(array.size(), count, name);
    return typed<T>(array, device, name);
  };
  CgResult result;
  result.iterations = by_system(iterations, static_cast<std::int64_t*>(nullptr), "iterations");
  result.status =
      reinterpret_cast<CgStatus*>(by_system(statuses, static_cast<std::uint8_t*>(nullptr), "status"));
  result.residual_norm = by_system(residual_norm, static_cast<double*>(nullptr), "residual_norm");
  result.true_residual_norm =
      by_system(true_residual_norm, static_cast<double*>(nullptr), "true_residual_norm");
  const CgVectors vectors{vector(x, "x"), vector(r, "r"), vector(z, "z"), vector(p, "p"), vector(q, "q")};
  SignalPoll poll;
  Executor executor = make_executor(threads, 0, "cpu", poll);
  if (device >= 0) {
    executor = {};
    executor.backend = Backend::cuda;
    executor.stream = stream_handle(stream);
  }
  if (scratch) {
    check_memory(*scratch, device, "scratch");
    executor.scratch = scratch->data();
    executor.scratch_bytes = static_cast<std::int64_t>(scratch->nbytes());
  }
  std::optional<CurrentDevice> current;
  if (device >= 0) current.emplace(device);
  Status status;
  {
    const nb::gil_scoped_release release;
    status = conjugate_gradient(problem, vectors, result, executor);
  }
  if (stopped && status.code == StatusCode::interrupted) return;
  check(status);
}

std::int64_t scratch_bytes(std::int64_t total, std::int64_t rows, bool ragged, bool on_device) {
  const std::int64_t place = 0;
  const Rows systems = ragged ? Rows::ragged_on_device(&place, rows, total)
                              : Rows::rectangle(rows, rows == 0 ? 0 : total / rows);
  std::int64_t bytes = 0;
  check(conjugate_gradient_scratch(systems, on_device ? Backend::cuda : Backend::cpu, &bytes));
  return bytes;
}

}  // namespace

void bind_conjugate_gradient(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<NativeMap>(module, "LinearMap", "A built-in linear map; it keeps the arrays that it reads.")
      .def_ro("rows", &NativeMap::rows, "The elements of A x.");
  module.def("compressed_map", &compressed, "device"_a, "dtype"_a, "offsets"_a, "indices"_a, "values"_a,
             "columns"_a, "Compressed rows. device -1: host memory.");
  module.def("banded_map", &banded, "device"_a, "dtype"_a, "width"_a, "values"_a, "total"_a,
             "offsets"_a.none(), "row_length"_a.none(), "2 width + 1 diagonals.");
  module.def("block_map", &blocks, "device"_a, "dtype"_a, "size"_a, "values"_a, "rows"_a,
             "Blocks of size times size along the diagonal.");
  module.def("normal_map", &normal, "device"_a, "dtype"_a, "offsets"_a, "indices"_a, "values"_a,
             "offsets_t"_a, "indices_t"_a, "values_t"_a, "damping"_a, "between"_a,
             "J^T J + damping, from J and its transpose; between holds J x.");
  module.def("conjugate_gradient", &solve, "device"_a, "b"_a, "x"_a, "r"_a, "z"_a, "p"_a, "q"_a, "matrix"_a,
             "preconditioner"_a.none(), "offsets"_a.none(), "row_length"_a.none(), "rtol"_a.none(),
             "rtol_of_all"_a, "atol"_a.none(), "atol_of_all"_a, "maxiter"_a.none(), "maxiter_of_all"_a,
             "replace_every"_a, "iteration_limit"_a, "check_every"_a, "callback"_a.none(), "iterations"_a,
             "status"_a, "residual_norm"_a, "true_residual_norm"_a, "scratch"_a.none(), "threads"_a,
             "stream"_a, "Solves all systems; x holds the first guess and the solution.");
  module.def("conjugate_gradient_scratch", &scratch_bytes, "total"_a, "rows"_a, "ragged"_a, "on_device"_a,
             "What conjugate_gradient takes as scratch.");
}

}  // namespace isofold::python
