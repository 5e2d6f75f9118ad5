// The reference executor: exact arithmetic throughout, one thread, no cleverness. It stays as an oracle.
#pragma once

#include <cstdint>

#include "algorithm/outcome.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/segmented.hpp"

namespace isofold::reference {

Outcome isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out);
Outcome isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                          ConstArray gradient, const IsotonicGradient& out);
Outcome segment_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments);

}  // namespace isofold::reference
