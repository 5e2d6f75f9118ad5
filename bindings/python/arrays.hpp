// NumPy arrays across the boundary: inputs are borrowed, outputs are made here and handed over without a
// copy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>
#include <string>

#include "isofold/arrays.hpp"

namespace isofold::python {

namespace nb = nanobind;

// Flat and contiguous; the Python side has seen to that. Never written.
using Input = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Offsets = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Flags = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Throws nb::type_error unless the element type is float16, float32 or float64.
DataType data_type(nb::dlpack::dtype type, const char* name);
ConstArray view(const Input& array, const char* name);
ConstArray view(const std::optional<Input>& array, const char* name);

// "float16", "float32" or "float64"; throws nb::value_error for anything else.
DataType parse_data_type(const std::string& name);

// A fresh one-dimensional array that owns its memory.
struct Output {
  void* data;
  nb::object array;
};
Output make_output(DataType type, std::int64_t size);
Output make_flags(std::int64_t size);
Output make_integers(std::int64_t size);

// Throws nb::value_error when `size` is not `expected`.
void check_size(std::size_t size, std::int64_t expected, const char* name);

}  // namespace isofold::python
