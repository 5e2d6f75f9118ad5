#include "support/oracle_row.hpp"

#include <cmath>

namespace isofold_test {

std::uint64_t clip_fit(DataType type, std::uint64_t fit, double lower_bound, double upper_bound) {
  const std::uint64_t lower = encode(type, lower_bound);
  const std::uint64_t upper = encode(type, upper_bound);
  const double x = decode(type, fit);
  if (x < decode(type, lower)) return lower;
  if (x > decode(type, upper)) return upper;
  return fit;
}

bool is_clipped(DataType type, std::uint64_t fit, double lower_bound, double upper_bound) {
  return clip_fit(type, fit, lower_bound, upper_bound) != fit;
}

std::uint64_t weight_gradient(DataType type, double y, double mean, double slope) {
  const double difference = y - mean;
  if (!std::isinf(difference)) return encode(type, difference * slope);
  return encode(type, 2.0 * ((0.5 * y - 0.5 * mean) * slope));
}

}  // namespace isofold_test
