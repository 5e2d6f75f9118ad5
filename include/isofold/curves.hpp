// Reads the curve files that `isofold calibrate` writes (docs/curve_format.md), and serves them. In a library
// of its own, isofold::curves, since it needs a JSON parser and a hash.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/status.hpp"

namespace isofold {

// One entry for each segment column, of the column's type.
using SegmentValue = std::variant<std::string, std::int64_t, bool>;
using SegmentKey = std::vector<SegmentValue>;

// A global curve and, in a file of version 2, curves of segments. Immutable once read; any number of threads
// may serve from it.
class CalibrationCurves {
 public:
  // Nothing in the text is trusted: encoding, structure, types, order, counts and checksum are checked before
  // *curves is touched. A fault is StatusCode::invalid_argument with one line that names it.
  [[nodiscard]] static Status parse(std::string_view json, CalibrationCurves* curves);
  [[nodiscard]] static Status load(const std::string& path, CalibrationCurves* curves);

  [[nodiscard]] bool increasing() const { return increasing_; }
  [[nodiscard]] const std::string& score_name() const { return score_name_; }  // empty when the file has none
  [[nodiscard]] const std::vector<std::string>& segment_columns() const { return segment_columns_; }
  // Curve 0 is the global one.
  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(offsets_.size()) - 1; }

  // The curve that serves a key: its segment's, or the global one (0) for keys unseen, or served by it. O(log
  // segments).
  [[nodiscard]] std::int64_t curve_of(const SegmentKey& key) const;

  // out[i] is the calibrated rate of scores[i] on curve curve_of_score[i], or on the global curve where that
  // is null: the exact real value, rounded once to out's type. A NaN score gives NaN. Over executor.threads
  // threads.
  [[nodiscard]] Status predict(ConstArray scores, const std::int64_t* curve_of_score, std::int64_t count,
                               MutableArray out, const Executor& executor = {}) const;

 private:
  friend class CurveDocument;

  bool increasing_ = true;
  std::string score_name_;
  std::vector<std::string> segment_columns_;
  std::vector<double> knots_x_;
  std::vector<double> knots_y_;
  std::vector<std::int64_t> offsets_ = {0};  // of the curves in the knots
  std::vector<SegmentKey> keys_;             // of the listed segments, strictly rising
  std::vector<std::int64_t> curves_;         // that serve them
};

}  // namespace isofold
