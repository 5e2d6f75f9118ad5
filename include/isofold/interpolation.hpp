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

// Several curves, end to end: curve c holds the knots offsets[c] .. offsets[c + 1] - 1, at least one.
struct Curves {
  const double* x = nullptr;
  const double* y = nullptr;
  const std::int64_t* offsets = nullptr;  // count + 1, strictly rising from 0
  std::int64_t count = 0;                 // at least 1
};

// out[i] is curve curve_of_point[i] at points[i], as above.
[[nodiscard]] Status interpolate(const Curves& curves, const std::int64_t* curve_of_point, ConstArray points,
                                 std::int64_t count, MutableArray out, const Executor& executor = {});

}  // namespace isofold
