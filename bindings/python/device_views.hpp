// Arrays in device memory as the bindings get them: flat and contiguous, through DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/rows.hpp"
#include "rows.hpp"

namespace isofold::python {

using DeviceInput = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig>;
using DeviceOutput = nb::ndarray<nb::ndim<1>, nb::c_contig>;

// CUDA's own memory and managed memory, by DLPack's numbers.
inline constexpr int kCuda = 2;
inline constexpr int kCudaManaged = 13;

template <class Array>
void check_place(const Array& array, int device, const char* name) {
  if ((array.device_type() == kCuda || array.device_type() == kCudaManaged) && array.device_id() == device) {
    return;
  }
  throw nb::value_error((std::string(name) + " is not on CUDA device " + std::to_string(device)).c_str());
}

inline ConstArray device_view(const DeviceInput& array, std::int64_t size, int device, const char* name) {
  check_place(array, device, name);
  check_size(array.size(), size, name);
  return {array.data(), data_type(array.dtype(), name)};
}

inline MutableArray device_view(const DeviceOutput& array, std::int64_t size, int device, const char* name) {
  check_place(array, device, name);
  check_size(array.size(), size, name);
  return {array.data(), data_type(array.dtype(), name)};
}

inline void* stream_handle(std::intptr_t stream) {
  return reinterpret_cast<void*>(stream);  // NOLINT(performance-no-int-to-ptr): DLPack passes integers
}

inline Executor device_executor(std::intptr_t stream) {
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream_handle(stream);
  return executor;
}

inline Executor device_executor(std::intptr_t stream, const std::optional<DeviceOutput>& scratch,
                                int device) {
  Executor executor = device_executor(stream);
  if (scratch) {
    check_place(*scratch, device, "scratch");
    executor.scratch = scratch->data();
    executor.scratch_bytes = static_cast<std::int64_t>(scratch->nbytes());
  }
  return executor;
}

inline Rows device_rows(int device, std::int64_t total, const std::optional<DeviceInput>& offsets,
                        std::optional<std::int64_t> row_length) {
  if (offsets) {
    check_place(*offsets, device, "offsets");
    const nb::dlpack::dtype type = offsets->dtype();
    // Libraries without 64-bit integers give pairs of words, the low one first.
    const bool words = type == nb::dtype<std::int32_t>();
    if (!words && type != nb::dtype<std::int64_t>()) throw nb::type_error("offsets must be int64");
    const auto size = static_cast<std::int64_t>(offsets->size()) / (words ? 2 : 1);
    if (size == 0) throw nb::value_error("offsets must not be empty");
    return Rows::ragged_on_device(static_cast<const std::int64_t*>(offsets->data()), size - 1, total);
  }
  return equal_rows(total, row_length);
}

// So many rows of so many elements, for asking how much scratch they take: of offsets only where they are,
// not what they say, is looked at.
inline Rows rows_in_outline(std::int64_t total, std::int64_t rows, bool ragged) {
  static const std::int64_t place = 0;
  return ragged ? Rows::ragged_on_device(&place, rows, total)
                : Rows::rectangle(rows, rows == 0 ? 0 : total / rows);
}

}  // namespace isofold::python
