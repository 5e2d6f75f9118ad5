// The derivative of a fit with respect to a weight (design: an approximation in float64, the same on every
// executor).
#pragma once

#include <cmath>
#include <limits>

#include "exact/host_device.hpp"

namespace isofold {

// (y - mean) share. Where y - mean is beyond float64 (halves are exact then) the product need not be.
ISOFOLD_HOST_DEVICE inline double gradient_in_weights(double y, double mean, double share) {
  const double gap = y - mean;
  if (std::fabs(gap) <= std::numeric_limits<double>::max()) return gap * share;
  return 2.0 * ((0.5 * y - 0.5 * mean) * share);
}

}  // namespace isofold
