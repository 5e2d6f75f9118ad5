// The CUDA executor's part in growing trees; as in cuda.hpp, calls only enqueue work.
#pragma once

#include <cstdint>

#include "isofold/best_splits.hpp"
#include "isofold/executor.hpp"
#include "isofold/histogram.hpp"
#include "isofold/status.hpp"

namespace isofold::cuda {

[[nodiscard]] Status quantize_gradients(const GradientProblem& problem, const GradientGrid* given,
                                        QuantizedGradient* out, GradientGrid* grid, const Executor& executor);
[[nodiscard]] Status histogram(const HistogramProblem& problem, const HistogramArrays& out,
                               const Executor& executor, std::int32_t* fault);
[[nodiscard]] Status subtract_histogram(const HistogramArrays& parent, const HistogramArrays& child,
                                        std::int64_t entries, const HistogramArrays& out,
                                        const Executor& executor);
[[nodiscard]] Status best_splits(const SplitProblem& problem, Split* out, std::uint32_t* left_bins,
                                 const Executor& executor);

}  // namespace isofold::cuda
