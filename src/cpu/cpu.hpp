// The CPU executor: chunk hulls over threads, a merge tree of segment lists, certified doubles throughout.
#pragma once

#include <cstdint>

#include "algorithm/outcome.hpp"
#include "isofold/executor.hpp"
#include "isofold/interpolation.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/projection.hpp"
#include "isofold/segmented.hpp"

namespace isofold::cpu {

Outcome isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out, const Executor& executor);
Outcome isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                          ConstArray gradient, const IsotonicGradient& out, const Executor& executor);
Outcome block_weights(const IsotonicProblem& problem, const std::uint8_t* block_starts, double* out,
                      const Executor& executor);
Outcome projection(const ProjectionProblem& problem, ConstArray sorted, MutableArray out,
                   std::uint8_t* block_starts, const Executor& executor);
Outcome projection_gradient(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                            ConstArray result, ConstArray gradient, MutableArray out,
                            const Executor& executor);
// curve_of_point: null where there is one curve.
Outcome interpolate(const Curves& curves, const std::int64_t* curve_of_point, ConstArray points,
                    std::int64_t count, MutableArray out, const Executor& executor);
Outcome segment_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments,
                           const Executor& executor);

}  // namespace isofold::cpu
