// Quotients rounded once, and the formats they are rounded to.
#include <gtest/gtest.h>

#include <cmath>

#include "algorithm/bounds.hpp"
#include "algorithm/row_view.hpp"
#include "exact/long_accumulator.hpp"
#include "exact/rounded_quotient.hpp"
#include "support/exact_conversions.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using isofold::CertifiedSum;
using isofold::ProductAccumulator;
using isofold::RoundedValue;
using isofold::SumAccumulator;
using isofold::SumBuilder;

constexpr DataType kTypes[] = {DataType::float64, DataType::float32, DataType::float16, DataType::bfloat16};

// Numerator and denominator of a weighted mean, in every representation.
struct Mean {
  SumBuilder total;
  SumBuilder weight;
  ProductAccumulator long_total;
  SumAccumulator long_weight;
  mpq_class exact_total = 0;
  mpq_class exact_weight = 0;

  void add(double y, double w) {
    total.add_product(y, w);
    weight.add(w);
    long_total.add_product(y, w);
    long_weight.add(w);
    exact_total += fraction(y) * fraction(w);
    exact_weight += fraction(w);
  }
  [[nodiscard]] std::uint64_t expected(DataType type) const {
    return round_rationally(type, exact_total / exact_weight);
  }
};

Mean random_mean(Random& random) {
  const auto& families = value_families();
  const Family& family =
      families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))];
  ZooRow row;
  row.values_type = kTypes[random.below(4)];  // narrow values reach narrow midpoints
  family.fill(random, random.between(1, 20), row);
  Doubles weights(row.values.size(), 1.0);
  if (random.chance(0.6))
    fill_weights(random, kTypes[random.below(4)], static_cast<std::int64_t>(weights.size()), weights);
  Mean mean;
  for (std::size_t i = 0; i < weights.size(); ++i) mean.add(row.values[i], weights[i]);
  return mean;
}

TEST(Quotients, LongAccumulatorsRoundOnce) {
  Random random(720);
  for (int round = 0; round < 12000; ++round) {
    const Mean mean = random_mean(random);
    for (const DataType type : kTypes) {
      const double got = isofold::exact_quotient(mean.long_total.value(), mean.long_weight.value(),
                                                 isofold::format_of(type));
      ASSERT_EQ(encode(type, got), mean.expected(type))
          << name_of(type) << " " << mean.exact_total / mean.exact_weight;
      ASSERT_FALSE(got == 0 && std::signbit(got));
    }
  }
}

TEST(Quotients, CertifiedDoublesAreRightOrSilent) {
  Random random(721);
  int decided = 0;
  int total = 0;
  for (int round = 0; round < 20000; ++round) {
    const Mean mean = random_mean(random);
    for (const DataType type : kTypes) {
      const RoundedValue got =
          isofold::certified_quotient(mean.total.finish(), mean.weight.finish(), isofold::format_of(type));
      ++total;
      if (!got.decided) continue;
      ++decided;
      ASSERT_EQ(encode(type, got.value), mean.expected(type)) << name_of(type) << " " << hex(got.value);
    }
  }
  EXPECT_GT(decided, total / 3) << "the fast way is to decide most";
}

TEST(Quotients, TheLadderIsAlwaysRight) {
  Random random(722);
  std::int64_t long_ways = 0;
  for (int round = 0; round < 20000; ++round) {
    const Mean mean = random_mean(random);
    for (const DataType type : kTypes) {
      const isofold::Format format = isofold::format_of(type);
      const double got = isofold::rounded_quotient(mean.total.finish(), mean.weight.finish(), format, [&] {
        ++long_ways;
        return isofold::exact_quotient(mean.long_total.value(), mean.long_weight.value(), format);
      });
      ASSERT_EQ(encode(type, got), mean.expected(type)) << name_of(type) << " " << hex(got);
    }
  }
  EXPECT_GT(long_ways, 100);
}

TEST(Quotients, AnyErrorWithinTheCertificateGivesTheSameRounding) {
  // The pair may be off by all of its error, either way.
  Random random(723);
  for (int round = 0; round < 20000; ++round) {
    const double n = any_magnitude(random, DataType::float64, 0.2, 0.8);
    const double d = std::fabs(any_magnitude(random, DataType::float64, 0.3, 0.7));
    const double n_error =
        random.chance(0.3)
            ? 0.0
            : std::fabs(n) * std::ldexp(random.unit(), -static_cast<int>(random.between(40, 110)));
    const double d_error =
        random.chance(0.3) ? 0.0 : d * std::ldexp(random.unit(), -static_cast<int>(random.between(40, 110)));
    const CertifiedSum numerator{{n, n * 0x1p-55 * random.unit()}, n_error};
    const CertifiedSum denominator{{d, d * 0x1p-55 * random.unit()}, d_error};
    const DataType type = kTypes[random.below(4)];
    const RoundedValue got = isofold::certified_quotient(numerator, denominator, isofold::format_of(type));
    if (!got.decided) continue;
    for (const int n_side : {-1, 1}) {
      for (const int d_side : {-1, 1}) {
        const mpq_class quotient = (fraction(numerator.value) + n_side * fraction(n_error)) /
                                   (fraction(denominator.value) + d_side * fraction(d_error));
        ASSERT_EQ(encode(type, got.value), round_rationally(type, quotient)) << name_of(type);
      }
    }
  }
}

TEST(Quotients, ADenominatorKnownTooPoorlyDecidesNothing) {
  // The pair says 1e-420 over nothing like what the sum may be: its error exceeds it.
  const isofold::CertifiedSum numerator{{0x1p440, 0.0}, 0.0};
  const isofold::CertifiedSum denominator{{0x1p860, 0.0}, 0x1p872};
  EXPECT_FALSE(isofold::certified_quotient(numerator, denominator, isofold::kFloat32).decided);
  const isofold::CertifiedSum good{{0x1p860, 0.0}, 0x1p800};
  EXPECT_TRUE(isofold::certified_quotient(numerator, good, isofold::kFloat32).decided);
}

TEST(Formats, RoundOnce) {
  Random random(724);
  for (int k = 0; k < 50000; ++k) {
    const DataType type = kTypes[random.below(4)];
    const double x = random.chance(0.5)
                         ? any_magnitude(random, DataType::float64)
                         : any_magnitude(random, type) * (1 + 0x1p-12 * static_cast<double>(random.below(9)));
    ASSERT_EQ(spell(type, isofold::round_to(x, isofold::format_of(type)) + 0.0), encode(type, x))
        << name_of(type) << " " << hex(x);
  }
}

TEST(Formats, LoadAndStoreEveryHalf) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const auto in = static_cast<std::uint16_t>(bits);
      double x = -1;
      isofold::load({&in, type}, 0, 1, &x);
      const double expected = decode(type, bits);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(x)
                                       : x == expected && std::signbit(x) == std::signbit(expected));
      std::uint16_t out = 0xdead;
      isofold::store({&out, type}, 0, 1, &x);
      ASSERT_EQ(out, encode(type, expected))
          << name_of(type) << " " << bits;  // zeros and NaNs become the one of each
    }
  }
}

TEST(Formats, BoundsClip) {
  const isofold::Bounds bounds(0.1, 0.5, isofold::kFloat16);
  const double low = decode(DataType::float16, encode(DataType::float16, 0.1));
  EXPECT_EQ(bounds.clip(0.0), low);
  EXPECT_EQ(bounds.clip(0.3), 0.3);
  EXPECT_EQ(bounds.clip(2.0), 0.5);
  EXPECT_TRUE(bounds.outside(0.05));
  EXPECT_FALSE(bounds.outside(low));
  EXPECT_FALSE(bounds.outside(0.5));
  EXPECT_TRUE(bounds.outside(0.6));
}

}  // namespace
}  // namespace isofold_test
