// Single device functions on numbers: means rounded once, units of floats, and rows that a lane pools.
#include <cuda_runtime.h>
#include <gmpxx.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "cuda/gradient_units.cuh"
#include "cuda/lane_rows.cuh"
#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"
#include "support/rational_oracle.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using namespace isofold::cuda;

void check_mean(double total, std::int64_t count) {
  const mpq_class mean = fraction(total) / mpz_class(static_cast<long>(count));
  for (const DataType type : {DataType::float32, DataType::float64}) {
    const double found = exact_doubles_mean(total, static_cast<double>(count), type == DataType::float32);
    EXPECT_EQ(spell(type, found), round_rationally(type, mean))
        << std::hexfloat << total << " / " << count << " to " << name_of(type) << ": " << found;
    if (::testing::Test::HasFailure()) return;
  }
}

TEST(ExactDoublesMean, RoundsOnce) {
  Random random(3);
  for (int run = 0; run < 30000; ++run) {
    const auto exponent = static_cast<int>(random.between(-160, 120));
    const std::int64_t count = random.chance(0.5) ? random.between(1, 128) : random.between(1, 100000);
    check_mean(std::ldexp(random.normal(), exponent), count);
    check_mean(std::ldexp(static_cast<double>(random.between(-5000, 5000)), exponent), count);
  }
}

// A float, or halfway between two, times the count; and the doubles next to that, whose quotient lies closer
// to it than a double can say: that takes counts above 2^28, for below them the product is a double.
TEST(ExactDoublesMean, AtMidpoints) {
  Random random(4);
  for (int run = 0; run < 30000; ++run) {
    const bool subnormal = run % 3 == 0;
    const std::int64_t significand = random.between(1, (1 << 25) - 1);
    const int exponent = subnormal ? -150 : static_cast<int>(random.between(-150, 80));
    const std::int64_t count = 1 + random.below(std::int64_t{1} << random.between(1, 40));
    const double total =
        random.sign() * std::ldexp(static_cast<double>(significand) * static_cast<double>(count), exponent);
    check_mean(total, count);
    check_mean(std::nextafter(total, INFINITY), count);
    check_mean(std::nextafter(total, -INFINITY), count);
  }
}

TEST(ExactDoublesMean, ZeroIsPositive) {
  EXPECT_FALSE(std::signbit(exact_doubles_mean(-0.0, 3, true)));
  EXPECT_FALSE(std::signbit(exact_doubles_mean(-0.0, 3, false)));
  EXPECT_FALSE(std::signbit(exact_doubles_mean(-0x1p-149, 3, true)));
}

// Floats for unit tests: one exponent or all, with zeros at the end, subnormals, zero itself.
template <class T>
std::vector<T> some_floats(Random& random, std::size_t count) {
  constexpr DataType kType = sizeof(T) == 4 ? DataType::float32 : DataType::float64;
  std::vector<T> values;
  const auto kind = random.below(4);
  const auto scale = static_cast<int>(random.between(-120, 100));
  for (std::size_t i = 0; i < count; ++i) {
    double x = any_bits(random, kType);
    if (kind == 1) x = std::ldexp(static_cast<double>(random.between(-999, 999)), scale);
    if (kind == 2)
      x = random.chance(0.9) ? 0.0 : std::ldexp(static_cast<double>(random.between(-9, 9)), -149);
    if (kind == 3) x = static_cast<double>(random.between(-64, 64)) * 0.25;
    values.push_back(static_cast<T>(quantize(kType, x)));
  }
  return values;
}

// All values are multiples of 2^unit, and of no larger power that the lowest exponent and the mantissas show.
template <class T>
void expect_unit(int unit, const std::vector<T>& values) {
  bool zero = true;
  int largest = std::numeric_limits<int>::max();
  for (const T value : values) {
    if (value == 0) continue;
    zero = false;
    const Parts parts = parts_of(static_cast<double>(value));
    EXPECT_GE(parts.exponent, unit) << std::hexfloat << value;
    largest = std::min(largest, parts.exponent);
  }
  if (zero) {
    EXPECT_EQ(unit, isofold::UnitTracker::kNone);
  } else if (values.size() == 1 && std::fabs(values[0]) >= std::numeric_limits<T>::min()) {
    EXPECT_EQ(unit, largest);
  } else {
    isofold::UnitTracker tracker;
    for (const T value : values) tracker.see(static_cast<double>(value));
    EXPECT_LE(unit, largest);
    EXPECT_GE(unit, std::min(tracker.exponent(), largest - (sizeof(T) == 4 ? 24 : 53)));
  }
}

template <class T>
void check_units(std::uint64_t seed) {
  Random random(seed);
  for (int run = 0; run < 300; ++run) {
    const std::vector<T> values = some_floats<T>(random, run < 100 ? 1 : 256);
    BitTracker<T> bits;
    double largest = 0;
    for (const T value : values) {
      bits.see(value);
      largest = std::max(largest, std::fabs(static_cast<double>(value)));
    }
    expect_unit(bits.unit(), values);
    EXPECT_TRUE(bits.finite());
    EXPECT_EQ(bits.largest_magnitude(), largest);
    TermTracker<T> terms;
    for (const T value : values) terms.see(value);
    const TermRange range =
        TermTracker<T>::range({terms.smallest, terms.largest, terms.mantissas, terms.low_mantissas});
    expect_unit(range.unit, values);
    EXPECT_TRUE(largest == 0 || largest < std::ldexp(1.0, std::min(range.top, 1023)) || range.top > 1023);
    if constexpr (sizeof(T) == 4) {
      FloatUnit unit;
      for (const T value : values) unit.see(value);
      EXPECT_EQ(unit.unit(), bits.unit());
    }
    // The same by a block, a value a thread.
    TeamScratch scratch;
    TermBits all;
    simt::launch(1, kBlock, [&] {
      const T mine = threadIdx.x < values.size() ? values[threadIdx.x] : T{0};
      BitTracker<T> own;
      own.see(mine);
      own.combine(Team<kBlock>{&scratch});
      EXPECT_EQ(own.unit(), bits.unit());
      EXPECT_EQ(own.largest_magnitude(), largest);
      if (threadIdx.x == 0) all.clear();
      __syncthreads();
      TermTracker<T> term;
      term.see(mine);
      term.leave(all);
    });
    EXPECT_EQ(TermTracker<T>::range(all).unit, range.unit);
    EXPECT_EQ(TermTracker<T>::range(all).top, range.top);
  }
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    BitTracker<T> bits;
    bits.see(T{1});
    bits.see(static_cast<T>(bad));
    EXPECT_FALSE(bits.finite());
    TermTracker<T> terms;
    terms.see(static_cast<T>(bad));
    EXPECT_FALSE(terms.finite());
  }
}

TEST(Units, OfFloats) { check_units<float>(5); }
TEST(Units, OfDoubles) { check_units<double>(6); }

TEST(Units, OfAWarpOfFloats) {
  Random random(8);
  for (int run = 0; run < 100; ++run) {
    const std::vector<float> values = some_floats<float>(random, 32);
    FloatUnit together;
    for (const float value : values) together.see(value);
    simt::launch(1, 32, [&] {
      FloatUnit unit;
      unit.see(values[threadIdx.x]);
      EXPECT_EQ(unit.unit_of_warp(), together.unit());
    });
  }
}

// One lane's pooling, in the places of the values; how many of the rows its sums could hold.
template <class V, class Sums>
int pool_as_the_cpu_does(std::uint64_t seed, DataType out) {
  constexpr DataType kType = sizeof(V) == 4 ? DataType::float32 : DataType::float64;
  Random random(seed);
  const auto& families = value_families();
  int pooled = 0;
  for (int run = 0; run < 3000; ++run) {
    const std::int64_t length = random.between(1, 128);
    ZooRow zoo;
    zoo.values_type = kType;
    families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))].fill(
        random, length, zoo);
    FitCase row;
    row.name = "lane row " + std::to_string(run);
    row.values = {kType, std::vector<double>(zoo.values.begin(), zoo.values.end())};
    row.increasing = random.chance(0.5);
    std::vector<V> values(zoo.values.begin(), zoo.values.end());
    std::vector<std::uint8_t> stack(values.size());
    const LaneRow<V> lane{values.data(), stack.data(), static_cast<int>(length),
                          static_cast<V>(row.increasing ? 1 : -1)};
    isofold::cuda::Output output{};
    output.lower = -INFINITY;
    output.upper = INFINITY;
    output.to_float32 = out == DataType::float32 ? 1 : 0;
    if (!fit_row<Sums>(lane, output)) continue;
    ++pooled;
    const Fit found{{out, std::vector<double>(values.begin(), values.end())}, stack};
    EXPECT_TRUE(same_fit(row, found, fit_on_cpu(row, out)));
  }
  return pooled;
}

TEST(LaneRows, PoolAsTheCpuDoes) {
  EXPECT_GT((pool_as_the_cpu_does<float, PlainLaneSums>(9, DataType::float32)), 1000);
  EXPECT_GT((pool_as_the_cpu_does<float, PairLaneSums<float>>(10, DataType::float32)), 2000);
  EXPECT_GT((pool_as_the_cpu_does<double, PairLaneSums<double>>(11, DataType::float64)), 2000);
  EXPECT_GT((pool_as_the_cpu_does<double, PairLaneSums<double>>(12, DataType::float32)), 2000);
}

// Means that differ from each other in the last of a hundred bits, and not at all.
TEST(LaneRows, PairsAreComparedExactly) {
  Random random(13);
  using isofold::DoubleDouble;
  using Sums = PairLaneSums<double>;
  int equal = 0;
  for (int run = 0; run < 40000; ++run) {
    const auto width = static_cast<int>(random.between(1, 64));
    const auto other_width = static_cast<int>(random.between(1, 64));
    // mean * width in pairs, on a grid of 2^-90 around numbers below 2^8.
    const double mean = std::ldexp(static_cast<double>(random.between(-(1LL << 40), 1LL << 40)), -33);
    const double fine = std::ldexp(static_cast<double>(random.between(-(1LL << 30), 1LL << 30)), -90);
    const auto sum_of = [&](int count, double nudge) {
      return (DoubleDouble{mean * count, 0.0} + fine * count) + nudge;
    };
    const double nudge = run % 3 == 0 ? 0.0 : std::ldexp(random.sign(), -90);
    const DoubleDouble sum = sum_of(width, nudge);
    const DoubleDouble other = sum_of(other_width, 0.0);
    const mpq_class left = (mpq_class(sum.high) + mpq_class(sum.low)) / width;
    const mpq_class right = (mpq_class(other.high) + mpq_class(other.low)) / other_width;
    equal += left == right ? 1 : 0;
    EXPECT_EQ(Sums::above(sum, width, other, other_width), left > right);
  }
  EXPECT_GT(equal, 10000);
}

// Near midpoints too, where a product with a reciprocal cannot tell.
TEST(LaneRows, MeansAreRoundedOnce) {
  Random random(10);
  for (int run = 0; run < 60000; ++run) {
    const auto count = static_cast<int>(random.between(2, 128));
    double sum = std::ldexp(random.normal(), static_cast<int>(random.between(-140, 120)));
    if (run % 3 == 0) {
      const auto significand = static_cast<double>(random.between(1, (1 << 25) - 1));
      sum = random.sign() * std::ldexp(significand * count, static_cast<int>(random.between(-150, 80)));
      if (run % 2 == 0) sum = std::nextafter(sum, INFINITY);
    }
    if (run % 50 == 1) sum = 0;
    EXPECT_EQ(spell(DataType::float32, lane_mean(sum, count) + 0.0F),
              round_rationally(DataType::float32, fraction(sum) / count))
        << std::hexfloat << sum << " / " << count;
  }
}

TEST(LaneRows, LeaveWhatIsNotExactToOthers) {
  std::vector<float> values{1.0F, 0x1p-60F, 2.0F};
  std::vector<std::uint8_t> stack(3);
  const auto plain = [&](int length) {
    return PlainLaneSums::hold({values.data(), stack.data(), length, 1.0F});
  };
  const auto pairs = [&](int length) {
    return PairLaneSums<float>::hold({values.data(), stack.data(), length, 1.0F});
  };
  EXPECT_FALSE(plain(3));
  EXPECT_TRUE(pairs(3));
  EXPECT_TRUE(plain(1));
  values[1] = 0x1p-110F;
  EXPECT_FALSE(pairs(3));
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    values = {1.0F, bad, 2.0F};
    EXPECT_FALSE(plain(3));
    EXPECT_FALSE(pairs(3));
  }
}

}  // namespace
}  // namespace isofold_test
