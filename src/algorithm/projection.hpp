// What a projection does to one element, the same on a host and on a device: before the fit and its means,
// and after them.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "exact/host_device.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/projection.hpp"

namespace isofold {

// Arrays of one projection. Doubles lie in sorted order.
template <class T>
struct ProjectionArrays {
  const T* sorted;
  T* out;
  double* a;
  double* b;
  double* fit;     // of a - b; NaN in rows that cannot be fitted
  double* mean_a;  // first a - b itself
  double* mean_b;
};

template <class T>
ISOFOLD_HOST_DEVICE inline void pose_element(const ProjectionProblem& problem,
                                             const ProjectionArrays<T>& arrays, std::int64_t i,
                                             std::int64_t place) {
  const double s = problem.sign * static_cast<double>(arrays.sorted[i]);
  const auto rank = static_cast<double>(problem.length - place);
  double a = s / problem.strength;
  double b = rank;
  if (problem.kind == Projection::sorted) {
    a = rank / problem.strength;
    b = s;
  } else if (problem.kind == Projection::top) {
    b = place < problem.k ? 1.0 : 0.0;
  }
  arrays.a[i] = a;
  arrays.b[i] = b;
  arrays.mean_a[i] = a - b;
}

// `base`: where the row begins.
template <class T>
ISOFOLD_HOST_DEVICE inline void finish_element(const ProjectionProblem& problem,
                                               const ProjectionArrays<T>& arrays, std::int64_t i,
                                               std::int64_t base) {
  double found = (arrays.a[i] - arrays.mean_a[i]) + arrays.mean_b[i];
  if (std::isnan(arrays.fit[i])) found = arrays.fit[i];
  if (problem.kind == Projection::sorted) {
    arrays.out[i] = static_cast<T>(problem.sign * found + 0.0);  // a zero is +0.0
    return;
  }
  if (problem.kind == Projection::top) found = found < 0.0 ? 0.0 : (found > 1.0 ? 1.0 : found);
  arrays.out[base + problem.order[i]] = static_cast<T>(found + 0.0);
}

template <class T>
struct ProjectionGradientArrays {
  const T* result;
  const T* gradient;
  T* out;
  double* g;  // in sorted order
  double* mean;
};

template <class T>
ISOFOLD_HOST_DEVICE inline void pose_gradient(const ProjectionProblem& problem,
                                              const ProjectionGradientArrays<T>& arrays, std::int64_t i,
                                              std::int64_t base) {
  const std::int64_t at = problem.kind == Projection::sorted ? i : base + problem.order[i];
  const double g = std::isnan(arrays.result[at]) ? std::numeric_limits<double>::quiet_NaN()
                                                 : static_cast<double>(arrays.gradient[at]);
  arrays.g[i] = problem.kind == Projection::sorted ? problem.sign * g : g;
}

template <class T>
ISOFOLD_HOST_DEVICE inline void finish_gradient(const ProjectionProblem& problem,
                                                const ProjectionGradientArrays<T>& arrays, std::int64_t i,
                                                std::int64_t base) {
  const double found = problem.kind == Projection::sorted
                           ? arrays.mean[i] * problem.sign
                           : (arrays.g[i] - arrays.mean[i]) * problem.sign / problem.strength;
  arrays.out[base + problem.order[i]] = static_cast<T>(found + 0.0);
}

// The fit of a projection, and the problem whose gradient is the mean over its blocks: `values` play no part
// in that, but must be finite on a CPU.
inline IsotonicProblem falling_fit(const ProjectionProblem& problem, const double* values) {
  IsotonicProblem fit;
  fit.values = {values, DataType::float64};
  fit.rows = Rows::rectangle(problem.rows, problem.length);
  fit.increasing = false;
  return fit;
}

}  // namespace isofold
