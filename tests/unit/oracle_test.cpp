// The oracle of the differential tester, checked against fractions, against the cases and by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/case_file.hpp"
#include "support/exact_oracle.hpp"
#include "support/random_batch.hpp"
#include "support/rational_oracle.hpp"

namespace isofold_test {
namespace {

void expect_same(const OracleAnswer& exact, const OracleAnswer& rational, const std::string& row) {
  EXPECT_EQ(exact.fit, rational.fit) << row;
  EXPECT_EQ(exact.block_starts, rational.block_starts) << row;
  EXPECT_EQ(exact.gradient_values, rational.gradient_values) << row;
  EXPECT_EQ(exact.gradient_weights, rational.gradient_weights) << row;
  EXPECT_EQ(exact.block_weights, rational.block_weights) << row;
}

TEST(Oracle, AgreesWithFractionsOnRandomRows) {
  BatchOptions options;
  options.seed = 20;
  options.max_length = 14;
  ExactOracle oracle;
  OracleAnswer answer;
  for (std::int64_t index = 0; index < 40 && !HasFailure(); ++index) {
    const Batch batch = make_batch(options, index);
    for (std::size_t k = 0; k < batch.rows.size() && !HasFailure(); ++k) {
      oracle.solve(batch.rows[k], answer);
      expect_same(answer, solve_rationally(batch.rows[k]), describe(batch, k));
    }
  }
  // Both arithmetics must have been exercised.
  EXPECT_GT(oracle.narrow_rows(), 2000);
  EXPECT_GT(oracle.wide_rows(), 2000);
}

TEST(Oracle, AgreesWithFractionsOnLongerRows) {
  BatchOptions options;
  options.seed = 21;
  ExactOracle oracle;
  OracleAnswer answer;
  const Batch batch = make_batch(options, 3);
  for (std::size_t k = 0; k < 64 && !HasFailure(); ++k) {
    oracle.solve(batch.rows[k], answer);
    expect_same(answer, solve_rationally(batch.rows[k]), describe(batch, k));
  }
}

TEST(Oracle, AgreesWithTheCases) {
  const std::vector<IsotonicCase> cases = read_isotonic_cases(ISOFOLD_TEST_DATA "/isotonic_cases.json");
  ASSERT_EQ(cases.size(), 120U);
  ExactOracle oracle;
  OracleAnswer answer;
  for (const IsotonicCase& c : cases) {
    OracleRow row;
    row.values = c.values;
    row.weights = c.weights;
    row.increasing = c.increasing;
    row.values_type = row.fit_type = c.type;
    oracle.solve(row, answer);
    ASSERT_EQ(answer.fit.size(), c.fit.size()) << c.name;
    std::vector<std::int64_t> starts;
    for (std::size_t i = 0; i < c.fit.size(); ++i) {
      EXPECT_EQ(decode(c.type, answer.fit[i]), c.fit[i]) << c.name << ", element " << i;
      if (answer.block_starts[i] != 0) starts.push_back(static_cast<std::int64_t>(i));
    }
    EXPECT_EQ(starts, c.block_starts) << c.name;
  }
}

TEST(Oracle, RoundsToEveryTypeAsFractionsDo) {
  Random random(22);
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    for (int k = 0; k < 4000; ++k) {
      // A number of the type, the midpoint above it, and both moved a little: every case of the rounding.
      const double x = any_magnitude(random, type);
      const mpq_class low = fraction(x);
      const mpq_class high = fraction(step(type, x, 1));
      const mpq_class nudge = (high - low) / mpq_class(mpz_class(1) << 90);
      for (const mpq_class& base : {low, mpq_class((low + high) / 2)}) {
        for (const mpq_class& q : {base, mpq_class(base + nudge), mpq_class(base - nudge)}) {
          if (q == 0) continue;
          const mpq_class magnitude = abs(q);
          const int bits = static_cast<int>(mpz_sizeinbase(magnitude.get_num_mpz_t(), 2)) -
                           static_cast<int>(mpz_sizeinbase(magnitude.get_den_mpz_t(), 2));
          const int exponent = bits - 100;
          mpq_class scaled = magnitude;
          if (exponent >= 0) {
            mpq_div_2exp(scaled.get_mpq_t(), scaled.get_mpq_t(), static_cast<mp_bitcnt_t>(exponent));
          } else {
            mpq_mul_2exp(scaled.get_mpq_t(), scaled.get_mpq_t(), static_cast<mp_bitcnt_t>(-exponent));
          }
          const mpz_class whole = scaled.get_num() / scaled.get_den();
          const UInt128 wide = static_cast<UInt128>(mpz_getlimbn(whole.get_mpz_t(), 1)) << 64 |
                               mpz_getlimbn(whole.get_mpz_t(), 0);
          EXPECT_EQ(round_to_format(format_of(type), q < 0, wide, exponent, scaled != whole),
                    round_rationally(type, q))
              << name_of(type) << " " << hex(x);
        }
      }
    }
  }
}

TEST(Formats, EncodeAndDecodeEveryHalf) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    for (std::uint64_t bits = 0; bits < 0x10000; ++bits) {
      const double x = decode(type, bits);
      if (std::isnan(x)) {
        EXPECT_EQ(spell(type, x), canonical_nan(type));
      } else {
        EXPECT_EQ(spell(type, x), bits);
      }
    }
  }
  EXPECT_EQ(decode(DataType::float16, 0x3c00), 1.0);
  EXPECT_EQ(decode(DataType::float16, 0x7bff), 65504.0);
  EXPECT_EQ(decode(DataType::float16, 0x0001), 0x1p-24);
  EXPECT_EQ(decode(DataType::bfloat16, 0x3f80), 1.0);
  EXPECT_EQ(decode(DataType::bfloat16, 0x0001), 0x1p-133);
  EXPECT_EQ(encode(DataType::float16, 65519.999), 0x7bffU);
  EXPECT_EQ(encode(DataType::float16, 65520.0), 0x7c00U);
  EXPECT_EQ(encode(DataType::float16, 0x1p-25), 0U);
  EXPECT_EQ(encode(DataType::float16, 0x1.8p-25), 1U);
  EXPECT_EQ(encode(DataType::float16, -0.0), 0U);
}

TEST(Formats, EncodeLikeTheHardware) {
  Random random(23);
  for (int k = 0; k < 100000; ++k) {
    const double x = any_bits(random, DataType::float64);
    const double y = any_magnitude(random, DataType::float32) * (1.0 + 0x1p-25 * random.unit());
    for (const double z : {x, y}) {
      const auto narrow = static_cast<float>(z);
      EXPECT_EQ(decode(DataType::float32, encode(DataType::float32, z)), static_cast<double>(narrow))
          << hex(z);
      EXPECT_EQ(decode(DataType::float64, encode(DataType::float64, z)), z) << hex(z);
    }
  }
  const auto inf = std::numeric_limits<double>::infinity();
  for (const DataType type : {DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64}) {
    EXPECT_EQ(decode(type, encode(type, inf)), inf);
    EXPECT_EQ(decode(type, encode(type, -inf)), -inf);
    EXPECT_TRUE(std::isnan(decode(type, encode(type, std::numeric_limits<double>::quiet_NaN()))));
  }
}

TEST(Formats, StepCountsFloats) {
  EXPECT_EQ(step(DataType::float32, 1.0, 1), 1.0 + 0x1p-23);
  EXPECT_EQ(step(DataType::float32, 1.0, -1), 1.0 - 0x1p-24);
  EXPECT_EQ(step(DataType::float64, -0x1p-1074, 2), 0x1p-1074);
  EXPECT_EQ(step(DataType::float16, 65504.0, 5), 65504.0);
  EXPECT_EQ(step(DataType::float64, -std::numeric_limits<double>::max(), -7),
            -std::numeric_limits<double>::max());
}

}  // namespace
}  // namespace isofold_test
