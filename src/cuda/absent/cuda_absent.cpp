// What stands in for the CUDA executor in a build without it.
#include "cuda/cuda.hpp"

namespace isofold::cuda {
namespace {

Status absent() {
  return {StatusCode::unsupported, "backend: this build of isofold has no CUDA executor (ISOFOLD_CUDA)", -1,
          -1};
}

}  // namespace

Status isotonic_regression(const IsotonicProblem&, const IsotonicFit&, const Executor&) { return absent(); }

Status isotonic_regression_scratch(const IsotonicProblem&, std::int64_t*) { return absent(); }

Status isotonic_gradient(const IsotonicProblem&, const std::uint8_t*, ConstArray, const IsotonicGradient&,
                         const Executor&) {
  return absent();
}

Status isotonic_gradient_scratch(const IsotonicProblem&, std::int64_t*) { return absent(); }

Status projection(const ProjectionProblem&, ConstArray, MutableArray, std::uint8_t*, const Executor&) {
  return absent();
}

Status projection_gradient(const ProjectionProblem&, const std::uint8_t*, ConstArray, ConstArray,
                           MutableArray, const Executor&) {
  return absent();
}

Status projection_scratch(const ProjectionProblem&, std::int64_t*) { return absent(); }

Status projection_gradient_scratch(const ProjectionProblem&, std::int64_t*) { return absent(); }

Status segment_reductions(const SegmentReduction*, std::int64_t, const Rows&, const Executor&, bool) {
  return absent();
}

Status segment_reductions_scratch(const Rows&, std::int64_t, std::int64_t*) { return absent(); }

}  // namespace isofold::cuda
