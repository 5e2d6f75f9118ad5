// Clipping of a rounded fit.
#pragma once

#include <limits>

#include "exact/format.hpp"

namespace isofold {

class Bounds {
 public:
  Bounds(double lower, double upper, Format format)
      : lower_(round_to(lower, format)), upper_(round_to(upper, format)) {}

  [[nodiscard]] double clip(double value) const {
    return value < lower_ ? lower_ : (value > upper_ ? upper_ : value);
  }
  [[nodiscard]] bool bounded() const {
    return lower_ > -std::numeric_limits<double>::infinity() ||
           upper_ < std::numeric_limits<double>::infinity();
  }
  [[nodiscard]] bool outside(double value) const { return value < lower_ || value > upper_; }

 private:
  double lower_;
  double upper_;
};

}  // namespace isofold
