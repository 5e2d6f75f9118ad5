// How a call's flat arrays are cut into rows: one, a rectangle, or by offsets.
#pragma once

#include <cstdint>
#include <optional>

#include "arrays.hpp"
#include "isofold/rows.hpp"

namespace isofold::python {

// One row, a rectangle of rows of `row_length`, or ragged rows by `offsets`.
inline Rows make_rows(std::int64_t total, const std::optional<Offsets>& offsets,
                      std::optional<std::int64_t> row_length) {
  if (offsets) {
    if (offsets->size() == 0 || offsets->data()[0] != 0 || offsets->data()[offsets->size() - 1] != total) {
      throw nb::value_error("offsets must rise from 0 to the number of values");
    }
    return Rows::ragged(offsets->data(), static_cast<std::int64_t>(offsets->size()) - 1);
  }
  if (!row_length) return Rows::single(total);
  if (*row_length < 0 || (*row_length == 0 && total != 0) || (*row_length > 0 && total % *row_length != 0)) {
    throw nb::value_error("row_length must divide the number of values");
  }
  return Rows::rectangle(*row_length == 0 ? 0 : total / *row_length, *row_length);
}

}  // namespace isofold::python
