// The CUDA executor: the same problems with every array in device memory. Calls only enqueue work on the
// executor's stream: none synchronises, reads device memory from the host, or allocates other than in stream
// order. What the host could only learn from device memory (values, weights, offsets) is judged there.
#pragma once

#include <cstdint>

#include "isofold/executor.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/projection.hpp"
#include "isofold/segmented.hpp"
#include "isofold/status.hpp"

namespace isofold::cuda {

[[nodiscard]] Status isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out,
                                         const Executor& executor);

// Bytes of device scratch that call takes.
[[nodiscard]] Status isotonic_regression_scratch(const IsotonicProblem& problem, std::int64_t* bytes);

[[nodiscard]] Status isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                                       ConstArray gradient, const IsotonicGradient& out,
                                       const Executor& executor);
[[nodiscard]] Status isotonic_gradient_scratch(const IsotonicProblem& problem, std::int64_t* bytes);

[[nodiscard]] Status projection(const ProjectionProblem& problem, ConstArray sorted, MutableArray out,
                                std::uint8_t* block_starts, const Executor& executor);
[[nodiscard]] Status projection_gradient(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                                         ConstArray result, ConstArray gradient, MutableArray out,
                                         const Executor& executor);
[[nodiscard]] Status projection_scratch(const ProjectionProblem& problem, std::int64_t* bytes);
[[nodiscard]] Status projection_gradient_scratch(const ProjectionProblem& problem, std::int64_t* bytes);

// prepared: the executor's scratch is that of an earlier call over the same segments, in the stream's order.
[[nodiscard]] Status segment_reductions(const SegmentReduction* reductions, std::int64_t count,
                                        const Rows& segments, const Executor& executor,
                                        bool prepared = false);
[[nodiscard]] Status segment_reductions_scratch(const Rows& segments, std::int64_t count,
                                                std::int64_t* bytes);

}  // namespace isofold::cuda
