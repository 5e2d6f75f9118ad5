// The CPU executor's part in growing trees: gradients on a grid, histograms, best splits.
#pragma once

#include <cstdint>

#include "algorithm/outcome.hpp"
#include "isofold/best_splits.hpp"
#include "isofold/executor.hpp"
#include "isofold/histogram.hpp"

namespace isofold::cpu {

// Outcome::bad_input where a gradient or hessian is not finite, a hessian negative, or one is beyond a given
// grid.
Outcome quantize_gradients(const GradientProblem& problem, const GradientGrid* given, QuantizedGradient* out,
                           GradientGrid* grid, const Executor& executor);

// Outcome::bad_input where a bin, node or row is out of range. `out` is written all over.
Outcome histogram(const HistogramProblem& problem, const HistogramArrays& out, const Executor& executor);

Outcome subtract_histogram(const HistogramArrays& parent, const HistogramArrays& child, std::int64_t entries,
                           const HistogramArrays& out, const Executor& executor);

Outcome best_splits(const SplitProblem& problem, Split* out, std::uint32_t* left_bins,
                    const Executor& executor);

}  // namespace isofold::cpu
