// Linear interpolation between stored knots: the exact real value, rounded once, and so monotone where the
// knots are.
#pragma once

#include <cstdint>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/status.hpp"

namespace isofold {

struct Knots {
  const double* x = nullptr;  // strictly rising and finite
  const double* y = nullptr;  // finite
  std::int64_t count = 0;     // at least 1
};

// out[i] is the curve at points[i]; left of the first knot and right of the last, the end knot's y. A NaN
// point gives NaN. O(log count) a point.
[[nodiscard]] Status interpolate(const Knots& knots, ConstArray points, std::int64_t count, MutableArray out,
                                 const Executor& executor = {});

}  // namespace isofold
