// The building blocks of exact arithmetic against GMP: error-free transformations, pairs, certified sums,
// long accumulators, exact numbers.
#include <gtest/gtest.h>

#include <cmath>

#include "exact/double_double.hpp"
#include "exact/long_accumulator.hpp"
#include "support/exact_conversions.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using isofold::CertifiedSum;
using isofold::DoubleDouble;
using isofold::ExactNumber;
using isofold::ProductAccumulator;
using isofold::SumAccumulator;
using isofold::SumBuilder;
using isofold::TwoTerms;
using isofold::UnitTracker;

constexpr DataType kDouble = DataType::float64;

// Pairs of numbers whose exponents lie anywhere, or close together, where cancellation happens.
std::pair<double, double> any_pair(Random& random, double low, double high) {
  const double a = any_magnitude(random, kDouble, low, high);
  if (random.chance(0.5)) return {a, any_magnitude(random, kDouble, low, high)};
  if (random.chance(0.3)) return {a, -step(kDouble, a, random.between(-3, 3))};
  return {a, random.sign() * a * std::ldexp(1.0 + random.unit(), static_cast<int>(random.between(-60, 3)))};
}

Doubles family_values(Random& random, std::int64_t length) {
  const auto& families = value_families();
  ZooRow row;
  families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))].fill(
      random, length, row);
  return row.values;
}

TEST(TwoSum, LosesNothing) {
  Random random(700);
  for (int k = 0; k < 50000; ++k) {
    const auto [a, b] = any_pair(random, 0.0, 0.999);
    const TwoTerms sum = isofold::two_sum(a, b);
    ASSERT_EQ(sum.high, a + b);
    ASSERT_EQ(fraction(sum.high) + fraction(sum.low), fraction(a) + fraction(b)) << hex(a) << " " << hex(b);
    const TwoTerms quick =
        std::fabs(a) >= std::fabs(b) ? isofold::quick_two_sum(a, b) : isofold::quick_two_sum(b, a);
    ASSERT_EQ(quick.high, sum.high);
    ASSERT_EQ(quick.low, sum.low);
  }
}

TEST(TwoProduct, LosesNothingInsideTheRange) {
  Random random(701);
  for (int k = 0; k < 50000; ++k) {
    const auto [a, b] = any_pair(random, 0.3, 0.74);
    const TwoTerms product = isofold::two_product(a, b);
    ASSERT_EQ(product.high, a * b);
    ASSERT_EQ(fraction(product.high) + fraction(product.low), fraction(a) * fraction(b))
        << hex(a) << " " << hex(b);
  }
}

TEST(DoubleDoubles, AreExactWithinAHundredBits) {
  // Fact 1 of double_double.hpp: multiples of a unit whose magnitudes add up to less than 2^100 of it.
  Random random(702);
  for (int round = 0; round < 400; ++round) {
    const int unit = static_cast<int>(random.between(-900, 800));
    const int spread = static_cast<int>(random.between(1, 92));
    DoubleDouble forward;
    DoubleDouble halves[2];
    mpq_class exact = 0;
    for (int i = 0; i < 100; ++i) {
      const int bits = static_cast<int>(random.between(1, std::min(spread, 53)));
      const int shift = static_cast<int>(random.between(0, spread - bits));
      const double term =
          random.sign() * std::ldexp(static_cast<double>(random.bits() >> (64 - bits)), unit + shift);
      exact += fraction(term);
      forward = forward + term;
      halves[i % 2] = halves[i % 2] + DoubleDouble{term, 0.0};
      ASSERT_EQ(fraction(forward), exact);
    }
    ASSERT_EQ(fraction(halves[0] + halves[1]), exact);
    ASSERT_EQ(fraction(halves[0] - halves[1]), fraction(halves[0]) - fraction(halves[1]));
  }
}

TEST(DoubleDoubles, ErrByFourUnitRoundoffsSquared) {
  // Fact 2: one operation errs by at most 4 u^2 times the sum of magnitudes.
  Random random(703);
  const mpq_class bound = 4 * fraction(0x1p-106);
  for (int round = 0; round < 2000; ++round) {
    const Doubles terms = family_values(random, 12);
    DoubleDouble sum;
    for (const double term : terms) {
      if (std::fabs(term) > 0x1p1000) continue;
      const DoubleDouble next = sum + term;
      const mpq_class error = fraction(next) - fraction(sum) - fraction(term);
      ASSERT_LE(abs(error), bound * (abs(fraction(sum)) + abs(fraction(term)))) << hex(term);
      sum = next;
    }
    const DoubleDouble other{terms[0] * 0x1p-30, terms[0] * 0x1p-90};
    const DoubleDouble joined = sum + other;
    const mpq_class error = fraction(joined) - fraction(sum) - fraction(other);
    ASSERT_LE(abs(error), bound * (abs(fraction(sum)) + abs(fraction(other))));
  }
}

TEST(UnitTrackers, FindAUnitOfAll) {
  Random random(704);
  for (int round = 0; round < 3000; ++round) {
    const Doubles values = family_values(random, random.between(1, 20));
    UnitTracker first;
    UnitTracker second;
    for (std::size_t i = 0; i < values.size(); ++i) (i % 3 == 0 ? first : second).see(values[i]);
    first.merge(second);
    if (first.exponent() == UnitTracker::kNone) {
      for (const double value : values) ASSERT_EQ(value, 0.0);
      continue;
    }
    for (const double value : values) {
      ASSERT_EQ(scaled(fraction(value), -first.exponent()).get_den(), 1)
          << hex(value) << " in 2^" << first.exponent();
    }
  }
}

TEST(UnitTrackers, SeeTheZerosThatMantissasEndIn) {
  UnitTracker labels;
  for (const double label : {0.0, 1.0, 1.0, 0.0}) labels.see(label);
  EXPECT_EQ(labels.exponent(), 0);
  UnitTracker thousands;
  for (const double value : {3000.0, -7000.0, 1000.0}) thousands.see(value);
  EXPECT_GE(thousands.exponent(),
            0);  // 3 is the best there is, from the lowest exponent alone it would be -43
}

TEST(CertifiedSums, StayWithinTheirError) {
  Random random(705);
  int exact_sums = 0;
  for (int round = 0; round < 4000; ++round) {
    const Doubles values = family_values(random, random.between(0, 60));
    Doubles weights;
    fill_weights(random, kDouble, static_cast<std::int64_t>(values.size()), weights);
    const bool products = random.chance(0.5);
    SumBuilder whole;
    SumBuilder parts[2];
    mpq_class exact = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      SumBuilder& part = parts[i % 2];
      if (products) {
        whole.add_product(values[i], weights[i]);
        part.add_product(values[i], weights[i]);
        exact += fraction(values[i]) * fraction(weights[i]);
      } else {
        whole.add(values[i]);
        part.add(values[i]);
        exact += fraction(values[i]);
      }
    }
    parts[0].merge(parts[1]);
    for (const CertifiedSum& sum : {whole.finish(), parts[0].finish()}) {
      if (!(sum.error <= 0x1p1000) || !std::isfinite(sum.value.high)) {
        ASSERT_FALSE(sum.exact());  // nothing is known, and nothing is claimed
        continue;
      }
      ASSERT_LE(abs(fraction(sum.value) - exact), fraction(sum.error));
      exact_sums += sum.exact() ? 1 : 0;
    }
  }
  EXPECT_GT(exact_sums, 2000);
}

// Three powers of two and a one, as far apart as can be: whoever claims that their sum is exact must have it
// exactly.
TEST(CertifiedSums, ClaimExactnessOnlyWhereItHolds) {
  for (int top = 1; top <= 140; ++top) {
    for (int middle = 0; middle <= top; ++middle) {
      for (const double sign : {1.0, -1.0}) {
        const Doubles terms = {std::ldexp(1.0, top), sign * std::ldexp(1.0, middle), 1.0,
                               1.0 + std::ldexp(1.0, middle / 2)};
        double plain = 0;
        double magnitude = 0;
        mpq_class exact = 0;
        SumBuilder sum;
        SumBuilder products;
        for (const double term : terms) {
          plain += term;
          magnitude += std::fabs(term);
          exact += fraction(term);
          sum.add(term);
          products.add_product(term, 3.0);
          if (isofold::exact_as_double(magnitude, 0)) {
            ASSERT_EQ(fraction(plain), exact) << top << " " << middle;
          }
          if (sum.finish().exact()) {
            ASSERT_EQ(fraction(sum.finish().value), exact) << top << " " << middle;
          }
          if (products.finish().exact()) {
            ASSERT_EQ(fraction(products.finish().value), 3 * exact) << top << " " << middle;
          }
        }
      }
    }
  }
  // And it is claimed where data live.
  EXPECT_TRUE(isofold::exact_as_double(0x1p50, 0));
  EXPECT_TRUE(isofold::exact_as_pair(0x1p95, 0));
}

template <class Accumulator, class Number>
void expect_equal(const Accumulator& sum, const Number& exact) {
  const auto value = sum.value();
  ASSERT_EQ(fraction(value), exact);
  ASSERT_EQ(value.sign, sgn(exact));
}

TEST(LongAccumulators, NeverRound) {
  Random random(706);
  for (int round = 0; round < 1500; ++round) {
    const Doubles values = family_values(random, random.between(0, 30));
    Doubles weights;
    fill_weights(random, kDouble, static_cast<std::int64_t>(values.size()), weights);
    SumAccumulator sum;
    SumAccumulator other_sum;
    ProductAccumulator products;
    ProductAccumulator other_products;
    mpq_class exact_sum = 0;
    mpq_class exact_products = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      (i % 2 == 0 ? sum : other_sum).add(values[i]);
      (i % 2 == 0 ? products : other_products).add_product(values[i], weights[i]);
      exact_sum += fraction(values[i]);
      exact_products += fraction(values[i]) * fraction(weights[i]);
    }
    sum += other_sum;
    products += other_products;
    expect_equal(sum, exact_sum);
    expect_equal(products, exact_products);
    sum -= other_sum;
    products -= other_products;
    sum -= sum;
    expect_equal(sum, mpq_class(0));
    ProductAccumulator again = products;
    again += other_products;
    expect_equal(again, exact_products);
  }
}

TEST(LongAccumulators, HoldTheExtremes) {
  const double most = largest_finite(kDouble);
  const double least = smallest_positive(kDouble);
  SumAccumulator sum;
  ProductAccumulator products;
  for (int i = 0; i < 5000; ++i) {
    sum.add(-most);
    products.add_product(most, -most);
  }
  sum.add(least);
  products.add_product(least, -least);
  expect_equal(sum, mpq_class(-5000 * fraction(most) + fraction(least)));
  expect_equal(products,
               mpq_class(-5000 * fraction(most) * fraction(most) - fraction(least) * fraction(least)));
}

TEST(ExactNumbers, MultiplyAndCompare) {
  Random random(707);
  for (int round = 0; round < 20000; ++round) {
    const auto [a, b] = any_pair(random, 0.0, 0.99);
    const auto [c, d] = any_pair(random, 0.0, 0.99);
    const double zero_or_a = random.chance(0.05) ? 0.0 : a;
    const auto left = product(isofold::exact_double(zero_or_a), isofold::exact_double(b));
    auto right = product(isofold::exact_double(c), isofold::exact_double(d));
    if (random.chance(0.3)) right = product(isofold::exact_double(b), isofold::exact_double(zero_or_a));
    ASSERT_EQ(fraction(left), fraction(zero_or_a) * fraction(b));
    const int order = cmp(fraction(left), fraction(right));
    ASSERT_EQ(compare(left, right), order > 0 ? 1 : (order < 0 ? -1 : 0));
    ASSERT_EQ(compare(right, left), order > 0 ? -1 : (order < 0 ? 1 : 0));
    const std::int64_t integer = random.between(-1000, 1000);
    const auto exponent = static_cast<int>(random.between(-2000, 2000));
    ASSERT_EQ(fraction(isofold::exact_integer(integer, exponent)), scaled(mpq_class(integer), exponent));
  }
}

TEST(ExactNumbers, TakePairsApart) {
  Random random(708);
  for (int round = 0; round < 20000; ++round) {
    const double high = random.chance(0.05) ? 0.0 : any_magnitude(random, kDouble, 0.05, 0.95);
    // A low part down to a hundred bits below the leading one.
    const double low = high * random.sign() * std::ldexp(static_cast<double>(random.bits() >> 40), -100);
    const DoubleDouble pair{
        high, random.chance(0.2)
                  ? 0.0
                  : std::ldexp(std::rint(std::ldexp(low, 100 - std::ilogb(high == 0 ? 1 : high))),
                               std::ilogb(high == 0 ? 1 : high) - 100)};
    ASSERT_EQ(fraction(isofold::exact_pair(pair)), fraction(pair)) << hex(pair.high) << " " << hex(pair.low);
  }
}

TEST(ExactNumbers, ShowTheirBitsThroughWindows) {
  Random random(709);
  ProductAccumulator sum;
  sum.add_product(0x1.23456789abcdep+300, 0x1.fedcba9876543p-200);
  sum.add_product(0x1.1p-500, 0x1.3p-400);
  const auto x = sum.value();
  ASSERT_GT(x.size, 2);
  for (int position = x.exponent - 130; position < x.top() + 130; position += 7) {
    mpz_class shifted = scaled(fraction(x), -position).get_num() / scaled(fraction(x), -position).get_den();
    mpz_class low;
    mpz_fdiv_r_2exp(low.get_mpz_t(), shifted.get_mpz_t(), 64);
    EXPECT_EQ(x.window(position), low.get_ui()) << position;
  }
}

}  // namespace
}  // namespace isofold_test
