#include "support/row_zoo.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace isofold_test {

namespace {

int lowest_exponent(DataType type) { return format_of(type).min_exponent - format_of(type).precision + 1; }

// Makes any number a legal weight of the type.
double as_weight(DataType type, double x) {
  const double w = quantize(type, std::fabs(x));
  return w > 0 ? w : smallest_positive(type);
}

}  // namespace

double quantize(DataType type, double x) {
  if (type == DataType::float64 && std::isfinite(x)) return x;
  const double limit = largest_finite(type);
  return std::clamp(decode(type, encode(type, x)), -limit, limit);
}

double any_magnitude(Random& random, DataType type, double low, double high) {
  const int first = lowest_exponent(type);
  const int span = format_of(type).max_exponent - first;
  const auto exponent = static_cast<int>(
      random.between(first + static_cast<int>(low * span), first + static_cast<int>(high * span)));
  // Few significant bits now and then: exact products, exact ties.
  const int spare = random.chance(0.3) ? static_cast<int>(random.below(53)) : 0;
  const double significand = 1.0 + static_cast<double>(random.bits() >> 12 >> spare << spare) * 0x1p-52;
  return random.sign() * quantize(type, std::ldexp(significand, exponent));
}

double any_bits(Random& random, DataType type) {
  const std::uint64_t mask = ~std::uint64_t{0} >> (64 - format_of(type).bits);
  for (;;) {
    const double x = decode(type, random.bits() & mask);
    if (std::isfinite(x)) return x;
  }
}

void fill_weights(Random& random, DataType type, std::int64_t length, Doubles& weights) {
  weights.resize(static_cast<std::size_t>(length));
  const auto kind = random.below(14);
  const double constant = as_weight(type, random.chance(0.5) ? 0.1 : any_magnitude(random, type));
  const double low = 0.9 * random.unit();
  const double high = low + 0.1 * random.unit();
  for (std::int64_t i = 0; i < length; ++i) {
    double w = 1.0;
    switch (kind) {
      case 0:  // ones
        break;
      case 1:
      case 2:
        w = static_cast<double>(random.between(1, kind == 1 ? 9 : 1000));
        break;
      case 3:
        w = 0.5 + random.unit();
        break;
      case 4:  // the paper's extreme weights
        w = std::exp(16.0 * random.unit() - 8.0);
        break;
      case 5:
        w = any_magnitude(random, type);
        break;
      case 6:
        w = any_magnitude(random, type, low, high);
        break;
      case 7:  // the two ends of the range
        w = random.chance(0.5) ? any_magnitude(random, type, 0.0, 0.1)
                               : any_magnitude(random, type, 0.9, 1.0);
        break;
      case 8:
        w = any_bits(random, type);
        break;
      case 9:
        w = smallest_positive(type) * static_cast<double>(random.between(1, 40));
        break;
      case 10:
        w = largest_finite(type) * (1.0 - 0.5 * random.unit());
        break;
      case 11:
        w = constant;
        break;
      case 12:
        w = std::ldexp(1.0, static_cast<int>(random.between(-12, 12)));
        break;
      default:  // one element outweighs the rest
        w = random.below(length) == 0 ? any_magnitude(random, type, 0.6, 1.0) : 1.0 + random.unit();
        break;
    }
    weights[static_cast<std::size_t>(i)] = as_weight(type, w);
  }
}

void fill_gradient(Random& random, DataType type, std::int64_t length, Doubles& gradient) {
  ZooRow row;
  row.values_type = type;
  const auto& families = value_families();
  families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))].fill(
      random, length, row);
  gradient = std::move(row.values);
  if (length == 0) return;
  const auto kind = random.below(24);
  const auto place = static_cast<std::size_t>(random.below(length));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (kind == 0) gradient[place] = std::numeric_limits<double>::quiet_NaN();
  if (kind == 1) gradient[place] = random.sign() * kInfinity;
  if (kind == 2) std::fill(gradient.begin(), gradient.end(), 0.0);
  if (kind == 3) std::fill(gradient.begin(), gradient.end(), 1.0);
  if (kind == 4) {  // one-hot, the usual probe of a Jacobian
    std::fill(gradient.begin(), gradient.end(), 0.0);
    gradient[place] = 1.0;
  }
}

const Family* find_family(std::string_view name) {
  for (const Family& family : value_families()) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

}  // namespace isofold_test
