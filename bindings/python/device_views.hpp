// Arrays in device memory as the bindings get them: flat and contiguous, through DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>

#include "arrays.hpp"
#include "isofold/arrays.hpp"
#include "isofold/rows.hpp"

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
  if (!row_length) return Rows::single(total);
  if (*row_length < 0 || (*row_length == 0 ? total != 0 : total % *row_length != 0)) {
    throw nb::value_error("row_length must divide the number of values");
  }
  return Rows::rectangle(*row_length == 0 ? 0 : total / *row_length, *row_length);
}

}  // namespace isofold::python
