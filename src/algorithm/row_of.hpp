#pragma once

#include <algorithm>
#include <cstdint>

#include "isofold/rows.hpp"

namespace isofold {

// The first row that ends after the element: rows before it that start there as well are empty.
inline std::int64_t row_of(const Rows& rows, std::int64_t element) {
  if (rows.offsets == nullptr) return element / rows.length;
  const std::int64_t* ends = rows.offsets + 1;
  return std::upper_bound(ends, ends + rows.count, element) - ends;
}

}  // namespace isofold
