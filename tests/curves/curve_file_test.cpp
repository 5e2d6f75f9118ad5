// Curve files written by the Python package (the examples of docs/curve_format.md), read and served from C++.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "isofold/curves.hpp"

namespace {

using isofold::CalibrationCurves;
using isofold::SegmentKey;
using isofold::Status;
using isofold::StatusCode;

std::string path_of(const char* name) { return std::string(ISOFOLD_TEST_DATA) + "/curves/" + name; }

std::string text_of(const char* name) {
  std::ifstream file(path_of(name), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(CurveFile, OneCurve) {
  CalibrationCurves curves;
  const Status status = CalibrationCurves::load(path_of("one_curve.json"), &curves);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(curves.count(), 1);
  EXPECT_TRUE(curves.increasing());
  EXPECT_EQ(curves.score_name(), "score");
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> scores = {-5.0, 0.1, 0.15, 0.2, 0.25, 0.35, 9.0, nan};
  std::vector<double> rates(scores.size());
  ASSERT_TRUE(curves.predict(scores.data(), nullptr, 8, rates.data()).ok());
  // 0.15 and 0.35 lie in the middle but for the last bits of 0.1, 0.2 and so on; the ends are exact.
  EXPECT_EQ(rates[0], 0.0);
  EXPECT_EQ(rates[1], 0.0);
  EXPECT_NEAR(rates[2], 0.25, 1e-15);
  EXPECT_EQ(rates[3], 0.5);
  EXPECT_EQ(rates[4], 0.5);
  EXPECT_NEAR(rates[5], 0.75, 1e-15);
  EXPECT_EQ(rates[6], 1.0);
  EXPECT_TRUE(std::isnan(rates[7]));
}

TEST(CurveFile, Segments) {
  CalibrationCurves curves;
  const Status status = CalibrationCurves::load(path_of("segments.json"), &curves);
  ASSERT_TRUE(status.ok()) << status.message;
  EXPECT_EQ(curves.count(), 2);
  EXPECT_EQ(curves.segment_columns(), (std::vector<std::string>{"country", "slot"}));
  using std::string;
  const std::int64_t austria = curves.curve_of(SegmentKey{string("AT"), std::int64_t{2}});
  EXPECT_EQ(austria, 1);
  EXPECT_EQ(curves.curve_of(SegmentKey{string("AT"), std::int64_t{11}}), 0);                // single class
  EXPECT_EQ(curves.curve_of(SegmentKey{string("\xC3\x96sterreich"), std::int64_t{2}}), 0);  // under min_rows
  EXPECT_EQ(curves.curve_of(SegmentKey{string("unseen"), std::int64_t{2}}), 0);
  const std::vector<double> scores = {0.3, 0.3};
  const std::vector<std::int64_t> which = {0, austria};
  std::vector<double> rates(2);
  ASSERT_TRUE(curves.predict(scores.data(), which.data(), 2, rates.data()).ok());
  EXPECT_EQ(rates[0], 0.5);
  EXPECT_NEAR(rates[1], 0.75, 1e-15);
}

TEST(CurveFile, FaultsAreNamedAndLeaveTheCurvesAlone) {
  const std::string one = text_of("one_curve.json");
  const std::string many = text_of("segments.json");
  const std::vector<std::pair<std::string, std::string>> damaged = {
      {"", "not JSON"},
      {"[]", "not a JSON object"},
      {"{\"format\": \"isofold-curve\"}", "version"},
      {std::string(100000, '['), "nested"},
      {one.substr(0, one.size() / 2), "not JSON"},
      {replaced(one, "isofold-curve", "isofold-curse"), "format"},
      {replaced(one, "\"version\": 1", "\"version\": 3"), "newer"},
      {replaced(one, "0.5,0.5", "0.5,0.6"), "checksum"},
      {replaced(one, "0.5,0.5", "0.5,0.4"), "monotone"},
      {replaced(one, "0.5,0.5", "0.5,NaN"), "not JSON"},
      {replaced(one, "0.5,0.5", "0.5,1e999"), "not JSON"},
      {replaced(one, "0.5,0.5", "0.5,true"), "not a number"},
      {replaced(one, "0.5,0.5", "0.5,1.5"), "out of range"},
      {replaced(one, "0.1,0.2", "0.2,0.1"), "rise"},
      {replaced(one, "\"count\": 4", "\"count\": 1000000000"), "out of range"},
      {replaced(one, "\"count\": 4", "\"count\": 5"), "list of 5"},
      {replaced(one, "\"count\": 4", "\"count\": 4, \"count\": 4"), "twice"},
      {replaced(one, "\"count\": 4", "\"count\": 4, \"extra\": 4"), "is unknown"},
      {replaced(one, "\"score\"", "\"\xFF\""), "not JSON"},
      {replaced(many, "[\"AT\",11]", "[\"AT\",1]"), "keys do not rise"},
      {replaced(many, "[\"AT\",11]", "[\"AT\",11.0]"), "whole number"},
      {replaced(many, "[\"AT\",11]", "[null,11]"), "not a string"},
      {replaced(many, "[\"AT\",11]", "[\"AT\",12]"), "checksum"},
      {replaced(many, "single_class", "no_reason"), "served_by_global"},
      {replaced(many, "\"rows\":4", "\"rows\":-4"), "negative"},
  };
  CalibrationCurves curves;
  ASSERT_TRUE(CalibrationCurves::parse(one, &curves).ok());
  for (const auto& [text, word] : damaged) {
    const Status status = CalibrationCurves::parse(text, &curves);
    EXPECT_EQ(status.code, StatusCode::invalid_argument) << word;
    EXPECT_NE(status.message.find(word), std::string::npos) << word << " is not in: " << status.message;
    EXPECT_EQ(curves.count(), 1);
  }
  EXPECT_FALSE(CalibrationCurves::load(path_of("no_such_file.json"), &curves).ok());
}

}  // namespace
