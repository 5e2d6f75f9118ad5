// Rows of the shapes that decide how a hull is found: the paper's families and those of bug reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace isofold_test {

// Fills `count` values of a row; where the shape has weights of its own, `weights` too (else it stays empty).
// Throws std::invalid_argument for an unknown name.
void fill_shape(const std::string& name, std::int64_t count, std::uint64_t seed, bool single_precision,
                std::vector<double>& values, std::vector<double>& weights);

// Fills the rows that `offsets` cut, each with a seed of its own, on all cores. Returns whether the shape has
// weights of its own, and so filled those. T: float or double.
template <class T>
bool fill_rows(const std::string& name, const std::vector<std::int64_t>& offsets, std::uint64_t seed,
               T* values, T* weights);

[[nodiscard]] const std::vector<std::string>& shape_names();

}  // namespace isofold_test
