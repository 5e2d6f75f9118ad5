// The families of values behind row_zoo.hpp. Each is short on purpose: read it to know what a failing row is
// made of.
#include <algorithm>
#include <cmath>

#include "support/row_zoo.hpp"

namespace isofold_test {

namespace {

// Fills the row with f(i), rounded to its type.
template <class Function>
void generate(ZooRow& row, std::int64_t length, Function f) {
  row.values.resize(static_cast<std::size_t>(length));
  for (std::int64_t i = 0; i < length; ++i) {
    row.values[static_cast<std::size_t>(i)] = quantize(row.values_type, f(i));
  }
}

int precision(const ZooRow& row) { return format_of(row.values_type).precision; }

// An ordinary scale most of the time, sometimes one near an end of the range.
double scale(Random& random, DataType type) {
  if (random.chance(0.7)) return std::ldexp(1.0, static_cast<int>(random.between(-3, 3)));
  const double low = random.chance(0.5) ? 0.02 : 0.85;
  return std::fabs(any_magnitude(random, type, low, low + 0.08));
}

void noise(Random& random, std::int64_t n, ZooRow& row) {
  const double unit = scale(random, row.values_type);
  generate(row, n, [&](std::int64_t) { return unit * random.normal(); });
}

void ramp_noise(Random& random, std::int64_t n, ZooRow& row) {
  generate(row, n, [&](std::int64_t i) {
    return 3.0 * static_cast<double>(i) / static_cast<double>(n) + random.normal();
  });
}

void gentle_ramp(Random& random, std::int64_t n, ZooRow& row) {  // short blocks
  generate(row, n, [&](std::int64_t i) { return static_cast<double>(i) + 2.0 * random.unit(); });
}

void wide_exponents(Random& random, std::int64_t n, ZooRow& row) {
  generate(row, n, [&](std::int64_t) { return any_magnitude(random, row.values_type); });
}

void narrow_exponents(Random& random, std::int64_t n, ZooRow& row) {
  const double low = 0.95 * random.unit();
  const double high = low + 0.05 * random.unit();
  generate(row, n, [&](std::int64_t) { return any_magnitude(random, row.values_type, low, high); });
}

void two_scales(Random& random, std::int64_t n, ZooRow& row) {
  const double big = any_magnitude(random, row.values_type, 0.5, 1.0);
  generate(row, n, [&](std::int64_t) {
    return random.chance(0.4) ? big * random.sign() : any_magnitude(random, row.values_type, 0.0, 0.5);
  });
}

// Wide exponents in sorted order, so that blocks stay short and of one magnitude each.
void wide_rising(Random& random, std::int64_t n, ZooRow& row) {
  wide_exponents(random, n, row);
  std::sort(row.values.begin(), row.values.end());
  for (std::int64_t k = n / 8; k > 0; --k) {
    const auto i = static_cast<std::size_t>(random.below(n));
    std::swap(row.values[i], row.values[std::min(i + 1, row.values.size() - 1)]);
  }
}

void random_bits(Random& random, std::int64_t n, ZooRow& row) {
  generate(row, n, [&](std::int64_t) { return any_bits(random, row.values_type); });
}

void decimals(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t period = random.between(2, 12);
  const std::int64_t start = random.below(period);
  generate(row, n, [&](std::int64_t i) { return static_cast<double>((i + start) % period) * 0.1; });
}

void one_decimal_noise(Random& random, std::int64_t n, ZooRow& row) {
  const double slope = random.chance(0.5) ? 0.05 : 0.0;
  generate(row, n, [&](std::int64_t i) {
    return std::round(10.0 * (random.normal() + slope * static_cast<double>(i))) / 10.0;
  });
}

// Rates k/m, weighted by m.
void rates(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t most = random.chance(0.5) ? 7 : 300;
  row.weights.clear();
  generate(row, n, [&](std::int64_t) {
    const std::int64_t m = random.between(1, most);
    if (row.weights_type != DataType::none) row.weights.push_back(static_cast<double>(m));
    return static_cast<double>(random.between(0, m)) / static_cast<double>(m);
  });
}

void labels(Random& random, std::int64_t n, ZooRow& row) {
  const double rate = random.unit();
  generate(row, n, [&](std::int64_t) { return random.chance(rate) ? 1.0 : 0.0; });
}

void few_levels(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t levels = random.between(2, 6);
  generate(row, n, [&](std::int64_t) { return static_cast<double>(random.below(levels) - levels / 2); });
}

void integer_ramp(Random& random, std::int64_t n, ZooRow& row) {
  generate(row, n, [&](std::int64_t i) { return static_cast<double>(i / 2 + random.below(5)); });
}

// The paper's stress: k values +B, one of -kB, the rest small and nearly collinear.
void cancellation(Random& random, std::int64_t n, ZooRow& row) {
  const double big =
      quantize(row.values_type, std::pow(10.0, random.between(3, 12)) * (random.chance(0.5) ? 1 : 1.1));
  const std::int64_t half = random.between(2, 32);
  generate(row, n, [&](std::int64_t i) {
    const std::int64_t place = i % (2 * half);
    if (place < half) return big;
    if (place == half) return -static_cast<double>(half) * big;
    return 1e-3 * static_cast<double>(i) + 1e-7 * random.unit();
  });
}

void subnormals(Random& random, std::int64_t n, ZooRow& row) {
  const double unit = smallest_positive(row.values_type);
  const std::int64_t most = random.chance(0.5) ? 4 : std::int64_t{1} << (precision(row) - 1);
  generate(row, n, [&](std::int64_t) { return unit * static_cast<double>(random.between(-most, most)); });
}

void signed_zeros(Random& random, std::int64_t n, ZooRow& row) {
  row.values.resize(static_cast<std::size_t>(n));
  const double tiny = smallest_positive(row.values_type);
  for (double& y : row.values) {
    y = random.sign() * (random.chance(0.15) ? tiny * static_cast<double>(random.between(1, 3)) : 0.0);
  }
}

void constants(Random& random, std::int64_t n, ZooRow& row) {
  const double y =
      quantize(row.values_type, random.chance(0.4) ? 0.1 : any_magnitude(random, row.values_type));
  generate(row, n, [&](std::int64_t) { return y; });
}

// A constant, and one element or two a few floats off.
void nearly_constant(Random& random, std::int64_t n, ZooRow& row) {
  constants(random, n, row);
  for (int k = 0; k < 2 && n > 0; ++k) {
    double& y = row.values[static_cast<std::size_t>(random.below(n))];
    y = step(row.values_type, y, random.between(-3, 3));
  }
}

void consecutive(Random& random, std::int64_t n, ZooRow& row) {
  const double start = random.chance(0.3) ? 1.0 : any_magnitude(random, row.values_type);
  const std::int64_t direction = random.chance(0.5) ? 1 : -1;
  const std::int64_t jitter = random.chance(0.5) ? 0 : random.between(1, 3);
  generate(row, n, [&](std::int64_t i) {
    return step(row.values_type, start, direction * i + (jitter != 0 ? random.between(-jitter, jitter) : 0));
  });
}

void rising(Random& random, std::int64_t n, ZooRow& row) {
  const double unit = scale(random, row.values_type);
  double y = -unit * static_cast<double>(n) / 2;
  generate(row, n, [&](std::int64_t) { return y += unit * random.unit(); });
}

void falling(Random& random, std::int64_t n, ZooRow& row) {
  rising(random, n, row);
  std::reverse(row.values.begin(), row.values.end());
}

void sawtooth(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t period = random.between(2, 40);
  const double slope = random.chance(0.5) ? 0.0 : 0.01;
  generate(row, n, [&](std::int64_t i) {
    return static_cast<double>(i % period) + slope * static_cast<double>(i) +
           (random.chance(0.02) ? 0.5 : 0.0);
  });
}

// Teeth of a good part of the row: bridges reach over many chunks, on both sides.
void long_sawtooth(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t period = std::max<std::int64_t>(2, n / random.between(2, 9));
  const double rise = random.chance(0.5) ? 0.3 : 1.0;
  generate(row, n, [&](std::int64_t i) {
    return static_cast<double>(i % period) + rise * static_cast<double>(i) + 1e-3 * random.unit();
  });
}

void cliff(Random& random, std::int64_t n, ZooRow& row) {
  rising(random, n, row);
  if (n == 0) return;
  const double depth = random.chance(0.5) ? 1e4 : any_magnitude(random, row.values_type, 0.6, 1.0);
  row.values.back() = quantize(row.values_type, -std::fabs(depth));
}

void mirrored_cliff(Random& random, std::int64_t n, ZooRow& row) {
  cliff(random, n, row);
  std::reverse(row.values.begin(), row.values.end());
  for (double& y : row.values) y = -y;
}

void near_overflow(Random& random, std::int64_t n, ZooRow& row) {
  const double limit = largest_finite(row.values_type);
  const bool both_signs = random.chance(0.5);
  generate(row, n, [&](std::int64_t) {
    const double y = limit * (1.0 - 0.25 * random.unit());
    return both_signs ? random.sign() * y : y;
  });
}

// Means at, or next to, the midpoint of two neighbouring floats: in each run of 2^k elements two large ones
// add up to 2^k midpoints, and the rest is nothing, or so little that only an exact sum sees it.
void midpoints(Random& random, std::int64_t n, ZooRow& row) {
  row.values.clear();
  double x = quantize(row.values_type, std::fabs(any_magnitude(random, row.values_type, 0.2, 0.8)));
  const double sign = random.sign();
  while (static_cast<std::int64_t>(row.values.size()) < n) {
    const std::int64_t run = std::int64_t{1} << random.between(1, 4);
    const double half = static_cast<double>(run) / 2;
    row.values.push_back(half * step(row.values_type, x, random.between(1, 2)));
    row.values.push_back(half * x);
    const bool tail = random.chance(0.5);
    for (std::int64_t k = 2; k < run; ++k) {
      row.values.push_back(
          tail ? x * std::ldexp(1.0 + random.unit(), -static_cast<int>(random.between(30, 200))) *
                     random.sign()
               : 0.0);
    }
    x = step(row.values_type, x, random.between(1, std::int64_t{1} << (precision(row) - 4)));
  }
  row.values.resize(static_cast<std::size_t>(n));
  for (double& y : row.values) y = sign * quantize(row.values_type, y);
  if (sign < 0) std::reverse(row.values.begin(), row.values.end());
}

// Pairs x + u, x of neighbouring floats: every second mean is a midpoint.
void float_pairs(Random& random, std::int64_t n, ZooRow& row) {
  double x = any_magnitude(random, row.values_type, 0.0, 0.95);
  generate(row, n, [&](std::int64_t i) {
    if (i % 2 != 0) return x;
    x = step(row.values_type, x, random.between(0, 4));
    return step(row.values_type, x, random.between(1, 3));
  });
}

// Runs with exactly equal means: pairs m + d, m - d about one small integer m.
void exact_ties(Random& random, std::int64_t n, ZooRow& row) {
  const double unit = std::ldexp(1.0, static_cast<int>(random.between(-8, 3)));
  double m = static_cast<double>(random.between(-40, 40));
  double d = 0.0;
  generate(row, n, [&](std::int64_t i) {
    if (i % 2 != 0) return unit * (m - d);
    if (random.chance(0.2)) m += 1.0;
    d = static_cast<double>(random.between(-3, 20));
    return unit * (m + d);
  });
}

// Exact ties, with a few elements moved to the next float.
void near_ties(Random& random, std::int64_t n, ZooRow& row) {
  exact_ties(random, n, row);
  for (std::int64_t k = random.between(1, 3); k > 0 && n > 0; --k) {
    double& y = row.values[static_cast<std::size_t>(random.below(n))];
    y = step(row.values_type, y, random.chance(0.5) ? 1 : -1);
  }
}

// Ties, and misses by one unit, in integers of any number of bits: the certificates for exact sums end
// somewhere there.
void bit_budgets(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t bits = random.between(3, precision(row) - 1);
  const std::int64_t small = std::int64_t{1} << random.between(1, bits - 1);
  const double unit = std::ldexp(1.0, static_cast<int>(random.between(-6, 6)));
  const double sign = random.sign();
  std::int64_t m = (std::int64_t{1} << (bits - 1)) - random.below(small);
  std::int64_t d = 0;
  generate(row, n, [&](std::int64_t i) {
    const std::int64_t miss = random.chance(0.1) ? random.between(-1, 1) : 0;
    if (i % 2 != 0) return sign * unit * static_cast<double>(m - d + miss);
    if (random.chance(0.2)) m += random.between(-1, 1);
    d = random.between(-2, small / 2);
    return sign * unit * static_cast<double>(m + d + miss);
  });
}

void blocks_of_ten(Random& random, std::int64_t n, ZooRow& row) {
  const std::int64_t block = random.between(2, 12);
  generate(row, n, [&](std::int64_t i) {
    return static_cast<double>(i / block) - 0.05 * static_cast<double>(i % block) + 0.01 * random.unit();
  });
}

void half_and_half(Random& random, std::int64_t n, ZooRow& row) {
  generate(row, n, [&](std::int64_t i) {
    return 2 * i < n ? static_cast<double>(i) : random.normal() + static_cast<double>(n);
  });
}

// Nearly level stairs of light weights, held by one or two heavy ones: the light elements' abscissae are lost
// in the last bits of sums of weights, and their heights over any chord in the chord's own error.
void anchored(Random& random, std::int64_t n, ZooRow& row) {
  const auto steps = random.between(1, 9);
  const double rise = std::ldexp(1.0, -static_cast<int>(random.below(precision(row))));
  const double jitter = random.chance(0.5) ? 0.0 : rise * random.unit();
  generate(row, n, [&](std::int64_t i) {
    return 1.0 + rise * static_cast<double>(i / steps) / static_cast<double>(n) + jitter * random.normal();
  });
  const bool weighted = row.weights_type != DataType::none;
  const bool narrow = row.weights_type == DataType::float16;
  const double light =
      std::ldexp(0.5 + 0.5 * random.unit(), -static_cast<int>(random.between(3, narrow ? 9 : 60)));
  const bool level = random.chance(0.3);
  row.weights.clear();
  for (std::int64_t i = 0; weighted && i < n; ++i)
    row.weights.push_back(level ? light : light * (0.5 + random.unit()));
  for (std::int64_t heavy = n == 0 ? 0 : random.between(1, 2); heavy > 0; --heavy) {
    const auto i = static_cast<std::size_t>(random.below(n));
    row.values[i] = quantize(row.values_type, random.chance(0.5) ? 0.0 : random.normal());
    if (weighted) row.weights[i] = (1.0 + random.unit()) * (!narrow && random.chance(0.2) ? 0x1p120 : 1.0);
  }
}

// A large number and steps of a few of its last bits, runs of 32 of which add up alike: what decides lies in
// the last bits of sums over a chunk. Here and there two elements, one far too high and one far too low.
void last_bits(Random& random, std::int64_t n, ZooRow& row) {
  const double level = scale(random, row.values_type) * (1.0 + random.unit());
  const auto jitter = random.between(1, 4);
  const double spike = random.chance(0.5) ? 0.0 : std::ldexp(level, static_cast<int>(random.between(1, 6)));
  generate(row, n, [&](std::int64_t i) {
    const double y = quantize(row.values_type, level);
    const std::int64_t tilt = random.chance(0.01) ? 1 : 0;
    return step(row.values_type, y, i % 2 != 0 ? -jitter : jitter + tilt - (i % 32 == 30 ? 1 : 0));
  });
  for (std::int64_t k = spike != 0.0 ? n / 300 : 0; k > 0; --k) {
    const auto i = static_cast<std::size_t>(random.below(n - 1));
    row.values[i] = quantize(row.values_type, level + spike);
    row.values[i + 1] = quantize(row.values_type, level - spike);
  }
}

}  // namespace

const std::vector<Family>& value_families() {
  static const std::vector<Family> families = {
      {"noise", noise},
      {"ramp-noise", ramp_noise},
      {"gentle-ramp", gentle_ramp},
      {"wide-exponents", wide_exponents},
      {"narrow-exponents", narrow_exponents},
      {"two-scales", two_scales},
      {"wide-rising", wide_rising},
      {"random-bits", random_bits},
      {"decimals", decimals},
      {"one-decimal-noise", one_decimal_noise},
      {"rates", rates},
      {"labels", labels},
      {"few-levels", few_levels},
      {"integer-ramp", integer_ramp},
      {"cancellation", cancellation},
      {"subnormals", subnormals},
      {"signed-zeros", signed_zeros},
      {"constants", constants},
      {"nearly-constant", nearly_constant},
      {"consecutive", consecutive},
      {"rising", rising},
      {"falling", falling},
      {"sawtooth", sawtooth},
      {"long-sawtooth", long_sawtooth},
      {"cliff", cliff},
      {"mirrored-cliff", mirrored_cliff},
      {"near-overflow", near_overflow},
      {"midpoints", midpoints},
      {"float-pairs", float_pairs},
      {"exact-ties", exact_ties},
      {"near-ties", near_ties},
      {"bit-budgets", bit_budgets},
      {"blocks-of-ten", blocks_of_ten},
      {"half-and-half", half_and_half},
      {"anchored", anchored},
      {"last-bits", last_bits},
  };
  return families;
}

}  // namespace isofold_test
