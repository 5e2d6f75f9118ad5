// Batches of symmetric positive definite systems for conjugate gradients: banded, and the same by compressed
// rows.
#pragma once

#include <cstdint>
#include <vector>

#include "isofold/isofold.hpp"
#include "support/random.hpp"

namespace isofold_test {

// Concatenated systems, each of which may be taken out alone.
template <class T>
struct LinearSystems {
  std::int64_t width = 0;
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::vector<T>> diagonals;  // 2 width + 1 of them
  std::vector<T> b;
  std::vector<T> inverse_diagonal;

  explicit LinearSystems(std::int64_t bands)
      : width(bands), diagonals(static_cast<std::size_t>(2 * bands + 1)) {}

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  [[nodiscard]] std::int64_t total() const { return offsets.back(); }

  // Second differences, and `ridge` on the diagonal: ill-conditioned where that is small.
  void append(Random& random, std::int64_t length, double ridge) {
    for (std::int64_t i = 0; i < length; ++i) {
      double neighbours = 0;
      for (std::int64_t d = -width; d <= width; ++d) {
        if (d == 0) continue;
        const bool inside = i + d >= 0 && i + d < length;
        const double weight = inside ? 1.0 / static_cast<double>(d * d) : 0.0;
        neighbours += 1.0 / static_cast<double>(d * d);
        diagonals[static_cast<std::size_t>(d + width)].push_back(static_cast<T>(-weight));
      }
      diagonals[static_cast<std::size_t>(width)].push_back(static_cast<T>(neighbours + ridge));
      inverse_diagonal.push_back(static_cast<T>(1.0 / (neighbours + ridge)));
      b.push_back(static_cast<T>(random.normal()));
    }
    offsets.push_back(offsets.back() + length);
  }

  void append(const LinearSystems& from, std::int64_t system) {
    const auto begin = from.offsets[static_cast<std::size_t>(system)];
    const auto end = from.offsets[static_cast<std::size_t>(system) + 1];
    const auto copy = [&](std::vector<T>& to, const std::vector<T>& source) {
      to.insert(to.end(), source.begin() + begin, source.begin() + end);
    };
    for (std::size_t d = 0; d < diagonals.size(); ++d) copy(diagonals[d], from.diagonals[d]);
    copy(b, from.b);
    copy(inverse_diagonal, from.inverse_diagonal);
    offsets.push_back(offsets.back() + end - begin);
  }

  [[nodiscard]] std::vector<T> banded_values() const {
    std::vector<T> all;
    for (const auto& diagonal : diagonals) all.insert(all.end(), diagonal.begin(), diagonal.end());
    return all;
  }

  struct Compressed {
    std::vector<std::int64_t> offsets = {0};
    std::vector<std::int64_t> indices;
    std::vector<T> values;
  };
  [[nodiscard]] Compressed compressed() const {
    Compressed found;
    for (std::int64_t s = 0; s < count(); ++s) {
      for (std::int64_t i = offsets[static_cast<std::size_t>(s)];
           i < offsets[static_cast<std::size_t>(s) + 1]; ++i) {
        for (std::int64_t d = -width; d <= width; ++d) {
          const std::int64_t column = i + d;
          if (column < offsets[static_cast<std::size_t>(s)] ||
              column >= offsets[static_cast<std::size_t>(s) + 1]) {
            continue;
          }
          found.indices.push_back(column);
          found.values.push_back(diagonals[static_cast<std::size_t>(d + width)][static_cast<std::size_t>(i)]);
        }
        found.offsets.push_back(static_cast<std::int64_t>(found.indices.size()));
      }
    }
    return found;
  }
};

// What a solve gives, comparable bit by bit where nothing is NaN.
template <class T>
struct Solution {
  std::vector<T> x;
  std::vector<std::int64_t> iterations;
  std::vector<isofold::CgStatus> status;
  std::vector<double> residual_norm;
  std::vector<double> true_residual_norm;
  bool operator==(const Solution&) const = default;
};

}  // namespace isofold_test
