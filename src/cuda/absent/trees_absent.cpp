// What stands in for the CUDA executor's part in growing trees in a build without it.
#include "cuda/trees.hpp"

namespace isofold::cuda {
namespace {

Status absent() {
  return {StatusCode::unsupported, "backend: this build of isofold has no CUDA executor (ISOFOLD_CUDA)", -1,
          -1};
}

}  // namespace

Status quantize_gradients(const GradientProblem&, const GradientGrid*, QuantizedGradient*, GradientGrid*,
                          const Executor&) {
  return absent();
}

Status histogram(const HistogramProblem&, const HistogramArrays&, const Executor&, std::int32_t*) {
  return absent();
}

Status subtract_histogram(const HistogramArrays&, const HistogramArrays&, std::int64_t,
                          const HistogramArrays&, const Executor&) {
  return absent();
}

Status best_splits(const SplitProblem&, Split*, std::uint32_t*, const Executor&) { return absent(); }

}  // namespace isofold::cuda
