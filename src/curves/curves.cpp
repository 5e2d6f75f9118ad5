#include "isofold/curves.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <new>

#include "curves/curve_document.hpp"
#include "isofold/interpolation.hpp"

namespace isofold {

Status CalibrationCurves::parse(std::string_view json, CalibrationCurves* curves) {
  try {
    *curves = CurveDocument(json).take();
    return {};
  } catch (const CurveFault& fault) {
    return {StatusCode::invalid_argument, fault.what()};
  } catch (const std::bad_alloc&) {
    return {StatusCode::out_of_memory, "out of memory"};
  }
}

Status CalibrationCurves::load(const std::string& path, CalibrationCurves* curves) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad()) return {StatusCode::invalid_argument, path + ": cannot be read"};
  Status status = parse(text, curves);
  if (!status.ok()) status.message = path + ": " + status.message;
  return status;
}

std::int64_t CalibrationCurves::curve_of(const SegmentKey& key) const {
  const auto found = std::lower_bound(keys_.begin(), keys_.end(), key);
  if (found == keys_.end() || *found != key) return 0;
  return curves_[static_cast<std::size_t>(found - keys_.begin())];
}

Status CalibrationCurves::predict(ConstArray scores, const std::int64_t* curve_of_score, std::int64_t count,
                                  MutableArray out, const Executor& executor) const {
  if (curve_of_score == nullptr) {
    const Knots global{knots_x_.data(), knots_y_.data(), offsets_.size() > 1 ? offsets_[1] : 0};
    return interpolate(global, scores, count, out, executor);
  }
  const Curves curves{knots_x_.data(), knots_y_.data(), offsets_.data(), this->count()};
  return interpolate(curves, curve_of_score, scores, count, out, executor);
}

}  // namespace isofold
