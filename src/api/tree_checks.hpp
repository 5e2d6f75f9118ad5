// Arguments of the functions that grow trees: what is wrong with them, and where.
#pragma once

#include <cstdint>

#include "isofold/best_splits.hpp"
#include "isofold/histogram.hpp"
#include "isofold/status.hpp"

namespace isofold::api {

// What the host can see without reading arrays.
[[nodiscard]] Status check_gradients(const GradientProblem& problem, const void* out);
[[nodiscard]] Status check_histogram(const HistogramProblem& problem, const HistogramArrays& out);
[[nodiscard]] Status check_arrays(const HistogramArrays& arrays, std::int64_t entries, const char* name);
[[nodiscard]] Status check_splits(const SplitProblem& problem, const Split* out);

// What takes reading them, on the host.
[[nodiscard]] Status check_grid(const GradientGrid& grid);
[[nodiscard]] Status check_feature_rules(const SplitProblem& problem);

// The first fault of a call that an executor has refused.
[[nodiscard]] Status find_gradient_fault(const GradientProblem& problem, const GradientGrid* given);
[[nodiscard]] Status find_histogram_fault(const HistogramProblem& problem);
[[nodiscard]] Status find_count_fault(const HistogramArrays& parent, const HistogramArrays& child,
                                      std::int64_t entries);

}  // namespace isofold::api
