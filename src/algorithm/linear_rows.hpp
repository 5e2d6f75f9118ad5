// One element of a linear map's result: the sum over its own row, in order. Host and device.
#pragma once

#include <cstdint>
#include <limits>

#include "exact/host_device.hpp"
#include "isofold/linear_maps.hpp"

namespace isofold {

template <class T, class V>
ISOFOLD_HOST_DEVICE double compressed_row(const CompressedRows& matrix, const T* x, std::int64_t row) {
  const V* values = static_cast<const V*>(matrix.values.data);
  double sum = 0.0;
  for (std::int64_t k = matrix.offsets[row]; k < matrix.offsets[row + 1]; ++k) {
    const std::int64_t column = matrix.indices[k];
    if (column < 0 || column >= matrix.columns) return std::numeric_limits<double>::quiet_NaN();
    sum += static_cast<double>(values[k]) * static_cast<double>(x[column]);
  }
  return sum;
}

// The row lies in the system of elements begin .. end - 1.
template <class T, class V>
ISOFOLD_HOST_DEVICE double banded_row(const V* values, std::int64_t rows, std::int64_t width, const T* x,
                                      std::int64_t row, std::int64_t begin, std::int64_t end) {
  const std::int64_t low = row - begin < width ? begin - row : -width;
  const std::int64_t high = end - 1 - row < width ? end - 1 - row : width;
  double sum = 0.0;
  for (std::int64_t d = low; d <= high; ++d) {
    sum += static_cast<double>(values[(d + width) * rows + row]) * static_cast<double>(x[row + d]);
  }
  return sum;
}

template <class T, class V>
ISOFOLD_HOST_DEVICE double block_row(const V* values, std::int64_t size, const T* x, std::int64_t row) {
  const std::int64_t first = row - row % size;
  double sum = 0.0;
  for (std::int64_t j = 0; j < size; ++j) {
    sum += static_cast<double>(values[row * size + j]) * static_cast<double>(x[first + j]);
  }
  return sum;
}

}  // namespace isofold
