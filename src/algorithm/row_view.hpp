// One row of a problem as the solvers see it: doubles, with the sign that turns every fit into a
// non-decreasing one.
#pragma once

#include <cstdint>

#include "exact/format.hpp"
#include "isofold/arrays.hpp"

namespace isofold {

struct RowView {
  ConstArray values;        // of the whole batch
  ConstArray weights;       // likewise, or absent
  std::int64_t begin = 0;   // the row's first element in them
  std::int64_t length = 0;  //
  double sign = 1.0;        // -1 for a non-increasing fit: the negated fit of the negated values

  [[nodiscard]] bool weighted() const { return weights.present(); }
};

[[nodiscard]] Format format_of(DataType type);

// Converts `count` elements from `first` on to doubles, exactly.
void load(ConstArray array, std::int64_t first, std::int64_t count, double* out);

// The row's elements from `first` on, where they already are what load_values would give; else null.
inline const double* values_in_place(const RowView& row, std::int64_t first) {
  if (row.values.type != DataType::float64 || row.sign < 0) return nullptr;
  return static_cast<const double*>(row.values.data) + row.begin + first;
}

inline void load_values(const RowView& row, std::int64_t first, std::int64_t count, double* out) {
  load(row.values, row.begin + first, count, out);
  if (row.sign < 0) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = -out[i];
  }
}

inline void load_weights(const RowView& row, std::int64_t first, std::int64_t count, double* out) {
  load(row.weights, row.begin + first, count, out);
}

// Stores doubles that the array's type holds exactly. Adding +0.0 makes every zero a positive one.
void store(MutableArray array, std::int64_t first, std::int64_t count, const double* values);
void store_constant(MutableArray array, std::int64_t first, std::int64_t count, double value);

}  // namespace isofold
