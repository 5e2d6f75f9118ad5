// Interpolation on several curves in one call: each point on the curve that it names, as alone.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "isofold/interpolation.hpp"

namespace {

using isofold::Curves;
using isofold::Executor;
using isofold::Knots;
using isofold::StatusCode;

const std::vector<double> kX = {0.0, 1.0, 0.5, -1e-300, 0.1, 0.3, 7.0};
const std::vector<double> kY = {0.0, 1.0, 0.25, 0.1, 0.2, 0.7, 0.9};
const std::vector<std::int64_t> kOffsets = {0, 2, 3, 7};

Curves curves() { return {kX.data(), kY.data(), kOffsets.data(), 3}; }

TEST(SeveralCurves, EachPointAsOnItsCurveAlone) {
  std::vector<double> points;
  std::vector<std::int64_t> curve_of_point;
  for (int i = 0; i < 10000; ++i) {
    points.push_back((i * 7919 % 10007) / 1000.0 - 1.0);
    curve_of_point.push_back(i % 3);
  }
  const auto count = static_cast<std::int64_t>(points.size());
  std::vector<double> alone(points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    const std::int64_t begin = kOffsets[static_cast<std::size_t>(curve_of_point[i])];
    const std::int64_t end = kOffsets[static_cast<std::size_t>(curve_of_point[i]) + 1];
    const Knots knots{kX.data() + begin, kY.data() + begin, end - begin};
    ASSERT_TRUE(isofold::interpolate(knots, &points[i], 1, &alone[i]).ok());
  }
  for (const int threads : {1, 2, 7}) {
    Executor executor;
    executor.threads = threads;
    std::vector<double> together(points.size(), -1.0);
    ASSERT_TRUE(
        isofold::interpolate(curves(), curve_of_point.data(), points.data(), count, together.data(), executor)
            .ok());
    EXPECT_EQ(together, alone);
  }
}

TEST(SeveralCurves, FaultsNameCurveAndPosition) {
  const double point = 0.5;
  double out = 0.0;
  const auto status_of = [&](const Curves& given, std::int64_t curve) {
    return isofold::interpolate(given, &curve, &point, 1, &out);
  };
  EXPECT_EQ(status_of(curves(), 3).code, StatusCode::invalid_argument);
  EXPECT_EQ(status_of(curves(), -1).position, 0);
  EXPECT_EQ(isofold::interpolate(curves(), nullptr, &point, 1, &out).code, StatusCode::invalid_argument);

  std::vector<std::int64_t> empty_curve = {0, 2, 2, 7};
  EXPECT_EQ(status_of({kX.data(), kY.data(), empty_curve.data(), 3}, 0).code, StatusCode::bad_offsets);

  std::vector<double> falling = kX;
  falling[5] = 0.1;  // equal to the knot before it
  const isofold::Status status = status_of({falling.data(), kY.data(), kOffsets.data(), 3}, 0);
  EXPECT_EQ(status.code, StatusCode::invalid_argument);
  EXPECT_EQ(status.row, 2);
  EXPECT_EQ(status.position, 2);
  EXPECT_NE(status.message.find("curve 2, position 2"), std::string::npos) << status.message;
}

}  // namespace
