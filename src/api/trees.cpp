// The public functions that grow trees: check, choose the executor, word the outcome.
#include <new>
#include <string>

#include "api/checks.hpp"
#include "api/tree_checks.hpp"
#include "cpu/trees.hpp"
#include "cuda/trees.hpp"
#include "exact/floating_mode.hpp"
#include "isofold/best_splits.hpp"
#include "isofold/histogram.hpp"

namespace isofold {
namespace {

template <class Call>
Status guarded(const Executor& executor, Call&& call) {
  const FloatingMode mode;
  try {
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    if (executor.backend == Backend::reference) {
      return api::fault(StatusCode::unsupported, "backend: histograms and splits have no reference executor");
    }
    return call(executor.backend == Backend::cuda);
  } catch (const std::bad_alloc&) {
    return api::fault(StatusCode::out_of_memory, "out of memory");
  }
}

template <class Find>
Status worded(Outcome outcome, Find&& find) {
  if (outcome == Outcome::interrupted) {
    return api::fault(StatusCode::interrupted, "interrupted by the caller");
  }
  return outcome == Outcome::bad_input ? find() : Status{};
}

}  // namespace

Status quantize_gradients(const GradientProblem& problem, const GradientGrid* given, QuantizedGradient* out,
                          GradientGrid* grid, const Executor& executor) {
  return guarded(executor, [&](bool on_device) -> Status {
    if (Status status = api::check_gradients(problem, out); !status.ok()) return status;
    if (on_device) {
      if (grid == nullptr) return api::fault(StatusCode::invalid_argument, "grid: null pointer");
      return cuda::quantize_gradients(problem, given, out, grid, executor);
    }
    if (given != nullptr) {
      if (Status status = api::check_grid(*given); !status.ok()) return status;
    }
    return worded(cpu::quantize_gradients(problem, given, out, grid, executor),
                  [&] { return api::find_gradient_fault(problem, given); });
  });
}

Status histogram(const HistogramProblem& problem, const HistogramArrays& out, const Executor& executor,
                 std::int32_t* fault) {
  return guarded(executor, [&](bool on_device) -> Status {
    if (Status status = api::check_histogram(problem, out); !status.ok()) return status;
    if (on_device) return cuda::histogram(problem, out, executor, fault);
    return worded(cpu::histogram(problem, out, executor), [&] { return api::find_histogram_fault(problem); });
  });
}

Status subtract_histogram(const HistogramArrays& parent, const HistogramArrays& child, std::int64_t entries,
                          const HistogramArrays& out, const Executor& executor) {
  return guarded(executor, [&](bool on_device) -> Status {
    if (Status status = api::check_arrays(parent, entries, "parent"); !status.ok()) return status;
    if (Status status = api::check_arrays(child, entries, "child"); !status.ok()) return status;
    if (Status status = api::check_arrays(out, entries, "out"); !status.ok()) return status;
    if (on_device) return cuda::subtract_histogram(parent, child, entries, out, executor);
    // Before `out` is written, which may be one of them.
    if (Status status = api::find_count_fault(parent, child, entries); !status.ok()) return status;
    return worded(cpu::subtract_histogram(parent, child, entries, out, executor), [] { return Status{}; });
  });
}

Status best_splits(const SplitProblem& problem, Split* out, std::uint32_t* left_bins,
                   const Executor& executor) {
  return guarded(executor, [&](bool on_device) -> Status {
    if (Status status = api::check_splits(problem, out); !status.ok()) return status;
    if (on_device) return cuda::best_splits(problem, out, left_bins, executor);
    if (Status status = api::check_grid(problem.grid); !status.ok()) return status;
    if (Status status = api::check_feature_rules(problem); !status.ok()) return status;
    return worded(cpu::best_splits(problem, out, left_bins, executor), [] { return Status{}; });
  });
}

}  // namespace isofold
