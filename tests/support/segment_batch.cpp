#include "support/segment_batch.hpp"

#include <algorithm>
#include <cmath>

namespace isofold_test {
namespace {

using Numbers = std::vector<double>;

double held(DataType type, double x) { return decode(type, encode(type, x)); }

// 2^exponent times something in [1, 2), either sign.
double scaled(Random& random, double exponent) {
  return random.sign() * std::ldexp(1 + random.unit(), static_cast<int>(std::floor(exponent)));
}

double between(Random& random, double low, double high) { return low + (high - low) * random.unit(); }

void normal(Random& random, DataType, Numbers& a, Numbers& b) {
  for (double& x : a) x = random.normal();
  for (double& x : b) x = random.normal();
}

void wide_range(Random& random, DataType, Numbers& a, Numbers& b) {
  for (double& x : a) x = random.sign() * std::pow(10.0, between(random, -4, 0));
  b = a;
}

// Every exponent of the type.
void all_exponents(Random& random, DataType type, Numbers& a, Numbers& b) {
  const double low = std::log2(smallest_positive(type));
  const double high = std::log2(largest_finite(type));
  const double reach = random.chance(0.5) ? 0.5 : 0.999;
  for (double& x : a) x = scaled(random, between(random, reach * low, reach * high));
  for (double& x : b) x = scaled(random, between(random, reach * low, reach * high));
}

// Terms and their opposites over many exponents, and a few small ones beside them: condition numbers to 1e30.
void cancels(Random& random, DataType type, Numbers& a, Numbers& b) {
  const double spread = type == DataType::float64 ? between(random, 1, 100) : between(random, 1, 20);
  const std::size_t half = a.size() / 2;
  const std::size_t rest = random.below(3) == 0 ? a.size() - 2 * half : std::min(a.size(), 2 * half + 1);
  for (std::size_t i = 0; i < half; ++i) {
    a[i] = held(type, scaled(random, between(random, 0, spread)));
    b[i] = held(type, scaled(random, between(random, -2, 2)));
    a[half + i] = -a[i];
    b[half + i] = b[i];
  }
  for (std::size_t i = 2 * half; i < a.size(); ++i) {
    a[i] = scaled(random, -spread * 0.5);
    b[i] = scaled(random, 0);
  }
  if (half > 1 && rest > 0 && random.chance(0.6)) a[static_cast<std::size_t>(random.below(2)) * half] *= 1.5;
  // In any order.
  for (std::size_t i = a.size(); i > 1; --i) {
    const auto k = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)));
    std::swap(a[i - 1], a[k]);
    std::swap(b[i - 1], b[k]);
  }
}

void subnormal(Random& random, DataType type, Numbers& a, Numbers& b) {
  const double unit = smallest_positive(type);
  for (double& x : a) x = unit * static_cast<double>(random.between(-9, 9));
  for (double& x : b) x = random.chance(0.5) ? scaled(random, between(random, -8, 3)) : 1.0;
}

void tiny_products(Random& random, DataType type, Numbers& a, Numbers& b) {
  const double half = std::log2(smallest_positive(type)) / 2;
  for (double& x : a) x = scaled(random, half + between(random, -20, 40));
  for (double& x : b) x = scaled(random, half + between(random, -20, 40));
}

void overflows_midway(Random& random, DataType type, Numbers& a, Numbers& b) {
  const double top = largest_finite(type);
  for (double& x : a) x = random.sign() * top * between(random, 0.5, 1);
  for (double& x : b) x = random.chance(0.8) ? random.sign() : random.sign() * between(random, 0, 3);
  for (std::size_t i = 0; i + 1 < a.size(); i += 2) {
    a[i + 1] = -a[i];
    b[i + 1] = b[i];
  }
}

void integers(Random& random, DataType, Numbers& a, Numbers& b) {
  const std::int64_t most = random.chance(0.5) ? 9 : 100000;
  for (double& x : a) x = static_cast<double>(random.between(-most, most));
  for (double& x : b) x = static_cast<double>(random.between(-most, most));
}

// Sums next to the midpoint of two floats of the type.
void ties(Random& random, DataType type, Numbers& a, Numbers& b) {
  const int precision = format_of(type).precision;
  for (double& x : a) x = 0.0;
  for (double& x : b) x = 1.0;
  const double large = std::ldexp(static_cast<double>(random.between(1, 1000) * 2 + 1), precision - 10);
  const double ulp = std::ldexp(1.0, std::ilogb(large) - precision + 1);
  const auto place = [&] {
    return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(a.size())));
  };
  if (a.empty()) return;
  a[place()] += large;
  a[place()] += random.sign() * ulp / 2;
  if (random.chance(0.5))
    a[place()] += random.sign() * ulp * std::ldexp(1.0, -static_cast<int>(random.between(1, 60)));
}

void decimals(Random& random, DataType, Numbers& a, Numbers& b) {
  for (double& x : a) x = static_cast<double>(random.between(0, 9)) * 0.1;
  for (double& x : b) x = static_cast<double>(random.between(-9, 9)) * 0.01;
}

void zeros(Random& random, DataType, Numbers& a, Numbers& b) {
  for (double& x : a) x = random.chance(0.9) ? 0.0 * random.sign() : random.normal();
  for (double& x : b) x = random.chance(0.9) ? 0.0 * random.sign() : random.normal();
}

// Legs of right-angled triangles, whose norms are integers, and integers and a half.
void triangles(Random& random, DataType, Numbers& a, Numbers& b) {
  const double scale = std::ldexp(1.0, static_cast<int>(random.between(-40, 40)));
  for (double& x : a) x = 0.0;
  for (double& x : b) x = 0.0;
  if (a.size() < 2) return;
  const auto m = static_cast<double>(random.between(2, 40));
  const auto n = static_cast<double>(random.between(1, 39));
  a[0] = scale * (m * m - n * n);
  a[a.size() - 1] = scale * 2 * m * n;
}

void not_finite(Random& random, DataType, Numbers& a, Numbers& b) {
  normal(random, DataType::float64, a, b);
  const double specials[] = {INFINITY, -INFINITY, NAN};
  for (int k = 0; k < 2 && !a.empty(); ++k) {
    Numbers& into = random.chance(0.5) ? a : b;
    const auto at = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(a.size())));
    into[at] = specials[random.below(3)];
    if (random.chance(0.2)) (&into == &a ? b : a)[at] = 0.0;
  }
}

struct ValueFamily {
  const char* name;
  void (*fill)(Random&, DataType, Numbers&, Numbers&);
};
constexpr ValueFamily kFamilies[] = {{"normal", normal},
                                     {"wide range", wide_range},
                                     {"all exponents", all_exponents},
                                     {"cancels", cancels},
                                     {"subnormal", subnormal},
                                     {"tiny products", tiny_products},
                                     {"overflows midway", overflows_midway},
                                     {"integers", integers},
                                     {"ties", ties},
                                     {"decimals", decimals},
                                     {"zeros", zeros},
                                     {"triangles", triangles},
                                     {"not finite", not_finite}};

}  // namespace

SegmentBatch random_segments(Random& random, DataType type, std::int64_t count, std::int64_t longest) {
  SegmentBatch batch;
  batch.type = type;
  for (std::int64_t s = 0; s < count; ++s) {
    const double kind = random.unit();
    std::int64_t length = random.between(0, std::min<std::int64_t>(20, longest));
    if (kind > 0.7) length = random.between(0, std::min<std::int64_t>(300, longest));
    if (kind > 0.95) length = random.between(0, longest);
    Numbers a(static_cast<std::size_t>(length));
    Numbers b(static_cast<std::size_t>(length));
    const ValueFamily& family = kFamilies[random.below(std::size(kFamilies))];
    family.fill(random, type, a, b);
    for (const double x : a) batch.a.push_back(held(type, x));
    for (const double x : b) batch.b.push_back(held(type, x));
    batch.offsets.push_back(static_cast<std::int64_t>(batch.a.size()));
    batch.families.push_back(family.name);
  }
  return batch;
}

std::vector<unsigned char> stored(DataType type, const std::vector<double>& numbers) {
  std::vector<unsigned char> bytes(numbers.size() * size_of(type) + 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    store_bits(bytes.data(), type, static_cast<std::int64_t>(i), encode(type, numbers[i]));
  }
  bytes.resize(numbers.size() * size_of(type));
  return bytes;
}

}  // namespace isofold_test
