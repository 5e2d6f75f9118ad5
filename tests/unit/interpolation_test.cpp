// Interpolation between knots against fractions: the exact value, rounded once.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "isofold/interpolation.hpp"
#include "support/guarded_array.hpp"
#include "support/rational_oracle.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using isofold::StatusCode;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

struct Curve {
  Doubles x;
  Doubles y;

  [[nodiscard]] isofold::Knots knots() const {
    return {x.data(), y.data(), static_cast<std::int64_t>(x.size())};
  }
};

std::uint64_t exactly(const Curve& curve, double t, DataType type) {
  if (std::isnan(t)) return canonical_nan(type);
  if (t <= curve.x.front()) return encode(type, curve.y.front());
  if (t >= curve.x.back()) return encode(type, curve.y.back());
  const auto right =
      static_cast<std::size_t>(std::upper_bound(curve.x.begin(), curve.x.end(), t) - curve.x.begin());
  const mpq_class x0 = fraction(curve.x[right - 1]);
  const mpq_class x1 = fraction(curve.x[right]);
  const mpq_class y0 = fraction(curve.y[right - 1]);
  const mpq_class y1 = fraction(curve.y[right]);
  return round_rationally(type, y0 + (y1 - y0) * (fraction(t) - x0) / (x1 - x0));
}

std::vector<std::uint64_t> interpolate(const Curve& curve, const Doubles& points, DataType points_type,
                                       DataType out_type, const isofold::Executor& executor = {}) {
  const auto count = static_cast<std::int64_t>(points.size());
  GuardedArray in(points_type, count, {3, 4, true});
  GuardedArray out(out_type, count, {5, 4, true});
  for (std::int64_t i = 0; i < count; ++i) in.set(i, points[static_cast<std::size_t>(i)]);
  const isofold::Status status =
      isofold::interpolate(curve.knots(), in.input(), count, out.output(), executor);
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_TRUE(out.guards_intact());
  std::vector<std::uint64_t> bits;
  for (std::int64_t i = 0; i < count; ++i) bits.push_back(out.bits(i));
  return bits;
}

// Knots from the zoo: x sorted and distinct, y as it comes or sorted.
Curve random_curve(Random& random) {
  const auto& families = value_families();
  const auto any_family = [&]() -> const Family& {
    return families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))];
  };
  ZooRow row;
  any_family().fill(random, random.between(1, 30), row);
  Curve curve;
  curve.x = row.values;
  std::sort(curve.x.begin(), curve.x.end());
  curve.x.erase(std::unique(curve.x.begin(), curve.x.end()), curve.x.end());
  any_family().fill(random, static_cast<std::int64_t>(curve.x.size()), row);
  curve.y = row.values;
  if (random.chance(0.6)) std::sort(curve.y.begin(), curve.y.end());
  return curve;
}

Doubles random_points(Random& random, const Curve& curve, DataType type) {
  Doubles points = {kNaN, kInfinity, -kInfinity, 0.0, -0.0};
  for (int k = 0; k < 40; ++k) {
    const auto i = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(curve.x.size())));
    const double a = curve.x[i];
    const double b = curve.x[std::min(i + 1, curve.x.size() - 1)];
    const double part = random.chance(0.3) ? 0.5 : random.unit();
    double t = a * (1 - part) + b * part;
    if (random.chance(0.2)) t = a;
    if (random.chance(0.2)) t = step(DataType::float64, random.chance(0.5) ? a : b, random.between(-2, 2));
    if (random.chance(0.1)) t = any_magnitude(random, type);
    points.push_back(quantize(type, t));
  }
  return points;
}

TEST(Interpolation, AgreesWithFractions) {
  Random random(31);
  constexpr DataType kTypes[] = {DataType::float64, DataType::float32, DataType::float16, DataType::bfloat16};
  for (int round = 0; round < 3000 && !HasFailure(); ++round) {
    const Curve curve = random_curve(random);
    const DataType in = kTypes[random.below(4)];
    const DataType out = random.chance(0.5) ? DataType::float64 : kTypes[random.below(4)];
    const Doubles points = random_points(random, curve, in);
    const std::vector<std::uint64_t> got = interpolate(curve, points, in, out);
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(got[i], exactly(curve, points[i], out))
          << "round " << round << ": " << hex(points[i]) << " as " << name_of(in) << " gives "
          << hex(decode(out, got[i])) << " as " << name_of(out);
    }
  }
}

TEST(Interpolation, IsMonotoneOverNeighbouringFloats) {
  Random random(32);
  for (int round = 0; round < 300 && !HasFailure(); ++round) {
    Curve curve = random_curve(random);
    std::sort(curve.y.begin(), curve.y.end());
    const double start =
        curve.x[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(curve.x.size())))];
    const std::int64_t stride = std::int64_t{1} << random.below(52);
    Doubles points;
    for (std::int64_t k = -100; k <= 100; ++k) points.push_back(step(DataType::float64, start, k * stride));
    const auto got = interpolate(curve, points, DataType::float64, DataType::float64);
    double last = -kInfinity;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double z = decode(DataType::float64, got[i]);
      EXPECT_LE(last, z);
      EXPECT_LE(curve.y.front(), z);
      EXPECT_GE(curve.y.back(), z);
      last = z;
    }
  }
}

TEST(Interpolation, KnownValues) {
  const Curve rates{{0, .1, .2, .3}, {0, .5, .5, 1}};
  const auto at = [&](double t) {
    return decode(DataType::float64, interpolate(rates, {t}, DataType::float64, DataType::float64)[0]);
  };
  EXPECT_EQ(at(.05), .25);
  EXPECT_EQ(at(.15), .5);
  EXPECT_NEAR(at(.25), .75, 1e-15);
  const Curve wide{{-1.7e308, 1.7e308}, {1, 3}};
  EXPECT_EQ(interpolate(wide, {0.0}, DataType::float64, DataType::float64)[0], spell(DataType::float64, 2.0));
  // Scores among the subnormals.
  const Curve tiny{{0, 4.1e-320, 4.4e-314, 1}, {.42, .42, .44, .44}};
  for (const double t : {0.0, 1e-322, 4.1e-320, 1e-317, 2e-314, 4.4e-314, 1e-300, .5, 1.0}) {
    const double z =
        decode(DataType::float64, interpolate(tiny, {t}, DataType::float64, DataType::float64)[0]);
    EXPECT_GE(z, .42);
    EXPECT_LE(z, .44);
  }
  const Curve one{{5}, {-0.0}};
  EXPECT_EQ(interpolate(one, {4, 5, 6}, DataType::float64, DataType::float64),
            (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST(Interpolation, ThreadsChangeNothing) {
  Random random(33);
  const Curve curve = random_curve(random);
  Doubles points;
  for (int k = 0; k < 5000; ++k) {
    const Doubles more = random_points(random, curve, DataType::float64);
    points.insert(points.end(), more.begin(), more.end());
  }
  isofold::Executor executor;
  executor.threads = 1;
  const auto alone = interpolate(curve, points, DataType::float64, DataType::float64, executor);
  executor.threads = 7;
  EXPECT_EQ(interpolate(curve, points, DataType::float64, DataType::float64, executor), alone);
}

TEST(Interpolation, Faults) {
  Curve curve{{0, 1, 2}, {0, 1, 2}};
  const double t[2] = {0.5, 1.5};
  double z[2];
  const auto call = [&](const isofold::Knots& knots) { return isofold::interpolate(knots, t, 2, z); };
  ASSERT_TRUE(call(curve.knots()).ok());
  EXPECT_EQ(call({curve.x.data(), curve.y.data(), 0}).code, StatusCode::invalid_argument);
  EXPECT_EQ(call({curve.x.data(), curve.y.data(), -1}).code, StatusCode::invalid_argument);
  EXPECT_EQ(call({nullptr, curve.y.data(), 3}).code, StatusCode::invalid_argument);
  EXPECT_EQ(call({curve.x.data(), nullptr, 3}).code, StatusCode::invalid_argument);
  curve.x[2] = 1;
  isofold::Status status = call(curve.knots());
  EXPECT_EQ(status.code, StatusCode::invalid_argument);
  EXPECT_EQ(status.position, 2);
  EXPECT_NE(status.message.find("knots.x"), std::string::npos) << status.message;
  curve.x[1] = kNaN;
  status = call(curve.knots());
  EXPECT_EQ(status.code, StatusCode::not_finite);
  EXPECT_EQ(status.position, 1);
  curve.x = {0, 1, 2};
  curve.y[2] = kInfinity;
  status = call(curve.knots());
  EXPECT_EQ(status.code, StatusCode::not_finite);
  EXPECT_EQ(status.position, 2);
  EXPECT_NE(status.message.find("knots.y"), std::string::npos) << status.message;
  curve.y[2] = 2;
  EXPECT_EQ(isofold::interpolate(curve.knots(), t, -1, z).code, StatusCode::invalid_argument);
  EXPECT_EQ(isofold::interpolate(curve.knots(), {}, 2, z).code, StatusCode::invalid_argument);
  EXPECT_EQ(isofold::interpolate(curve.knots(), t, 2, {}).code, StatusCode::invalid_argument);
  EXPECT_EQ(isofold::interpolate(curve.knots(), {nullptr, DataType::float32}, 2, z).code,
            StatusCode::invalid_argument);
  EXPECT_EQ(isofold::interpolate(curve.knots(), t, 2, {nullptr, DataType::float32}).code,
            StatusCode::invalid_argument);
  EXPECT_TRUE(
      isofold::interpolate(curve.knots(), {nullptr, DataType::float32}, 0, {nullptr, DataType::float32})
          .ok());
}

}  // namespace
}  // namespace isofold_test
