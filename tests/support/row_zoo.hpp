// Random rows of every kind that has broken an isotonic solver, or could.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "support/float_formats.hpp"
#include "support/random.hpp"

namespace isofold_test {

using Doubles = std::vector<double>;

// x rounded to the type; what overflows becomes its largest number.
[[nodiscard]] double quantize(DataType type, double x);

// significand 2^exponent with a random significand and an exponent uniform over the type's whole range,
// subnormals included, or over the part of it from `low` to `high` (0 to 1).
[[nodiscard]] double any_magnitude(Random& random, DataType type, double low = 0.0, double high = 1.0);

// A finite number from random bits.
[[nodiscard]] double any_bits(Random& random, DataType type);

// What a family fills in: n values of `values_type`, and, if it has weights of its own, `weights` too.
struct ZooRow {
  DataType values_type = DataType::float64;
  DataType weights_type = DataType::none;  // none: no weights wanted
  Doubles values;
  Doubles weights;
};

struct Family {
  std::string_view name;
  void (*fill)(Random& random, std::int64_t length, ZooRow& row);
};

[[nodiscard]] const std::vector<Family>& value_families();
[[nodiscard]] const Family* find_family(std::string_view name);

// Weights of a random kind, all finite and positive.
void fill_weights(Random& random, DataType type, std::int64_t length, Doubles& weights);

// An incoming gradient of a random kind; sometimes with a NaN or an infinity.
void fill_gradient(Random& random, DataType type, std::int64_t length, Doubles& gradient);

}  // namespace isofold_test
