// A curve file's JSON, checked key by key, with its content hashed on the way.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

#include "curves/content_hash.hpp"
#include "isofold/curves.hpp"

namespace isofold {

// What is wrong with a file, in one line.
class CurveFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class CurveDocument {
 public:
  // Throws CurveFault.
  explicit CurveDocument(std::string_view text);

  [[nodiscard]] CalibrationCurves take() { return std::move(curves_); }

 private:
  using Json = nlohmann::json;

  void read_head();
  void read_global_curve();
  void read_segment_counts();
  void read_segment_columns();
  void read_segments();
  SegmentKey read_key(const Json& segment, const std::string& where);
  void read_segment_curve(const Json& segment, const std::string& where);
  void read_curve(const Json& object, const std::string& where);
  void check_hash() const;

  Json root_;
  int version_ = 0;
  double floor_ = 0.0;
  double ceiling_ = 1.0;
  std::vector<int> column_types_;
  std::int64_t all_knots_ = 0;
  ContentHash hash_;
  CalibrationCurves curves_;
};

}  // namespace isofold
