// The built-in linear maps: check once, then apply on whichever executor asks.
#include "isofold/linear_maps.hpp"

#include <string>
#include <utility>

#include "api/checks.hpp"
#include "api/guarded.hpp"
#include "cpu/conjugate_gradient.hpp"
#include "cuda/conjugate_gradient.hpp"

namespace isofold {
namespace {

bool taken(DataType type) { return type == DataType::float32 || type == DataType::float64; }

Status worded(Outcome outcome) {
  if (outcome == Outcome::done) return {};
  return api::fault(StatusCode::interrupted, "interrupted by the caller");
}

Status refused(std::string message) { return api::fault(StatusCode::invalid_argument, std::move(message)); }

Status check_values(const ConstArray& values, DataType type) {
  if (!taken(type)) return refused("type: a linear map takes float32 and float64");
  if (!taken(values.type)) return refused("values: a linear map takes float32 and float64");
  return {};
}

// The map, or one that says what is wrong.
template <class Matrix>
LinearMap checked(const Matrix& matrix, DataType type, const Status& fault) {
  if (!fault.ok()) return [fault](const void*, void*, const Executor&) { return fault; };
  return [matrix, type](const void* x, void* y, const Executor& executor) -> Status {
    return api::guarded([&]() -> Status {
      if (executor.backend == Backend::cuda) return cuda::apply(matrix, type, x, y, executor);
      return worded(cpu::apply(matrix, type, x, y, executor));
    });
  };
}

}  // namespace

LinearMap linear_map(const CompressedRows& matrix, DataType type) {
  Status fault = check_values(matrix.values, type);
  if (fault.ok() && (matrix.rows < 0 || matrix.columns < 0)) fault = refused("rows: a size is negative");
  if (fault.ok() && matrix.offsets == nullptr) fault = refused("offsets: null pointer");
  return checked(matrix, type, fault);
}

LinearMap linear_map(const Banded& matrix, DataType type) {
  Status fault = check_values(matrix.values, type);
  if (fault.ok() && matrix.width < 0) fault = refused("width must not be negative");
  return checked(matrix, type, fault);
}

LinearMap linear_map(const BlockDiagonal& matrix, DataType type) {
  Status fault = check_values(matrix.values, type);
  if (fault.ok() && (matrix.size < 1 || matrix.rows < 0 || matrix.rows % matrix.size != 0)) {
    fault = refused("size must divide the number of rows: " + std::to_string(matrix.size) + ", " +
                    std::to_string(matrix.rows));
  }
  return checked(matrix, type, fault);
}

LinearMap normal_equations(const CompressedRows& jacobian, const CompressedRows& transpose, double damping,
                           void* between, DataType type) {
  return [forward = linear_map(jacobian, type), back = linear_map(transpose, type), damping, between, type,
          count = jacobian.columns](const void* x, void* y, const Executor& executor) -> Status {
    if (Status status = forward(x, between, executor); !status.ok()) return status;
    if (Status status = back(between, y, executor); !status.ok() || damping == 0.0) return status;
    if (executor.backend == Backend::cuda) return cuda::add_scaled(type, damping, x, y, count, executor);
    return worded(cpu::add_scaled(type, damping, x, y, count, executor));
  };
}

}  // namespace isofold
