// The public functions: check, choose the executor, word the outcome.
#include "isofold/isofold.hpp"

#include <optional>
#include <string>

#include "api/checks.hpp"
#include "api/guarded.hpp"
#include "api/tie_order.hpp"
#include "cpu/cpu.hpp"
#include "cuda/cuda.hpp"
#include "reference/reference.hpp"

namespace isofold {
namespace {

Status worded(Outcome outcome, const IsotonicProblem& problem) {
  switch (outcome) {
    case Outcome::done:
      return {};
    case Outcome::interrupted:
      return api::fault(StatusCode::interrupted, "interrupted by the caller");
    case Outcome::bad_input:
      break;
  }
  return api::check_elements(problem);
}

Status host_only(const Executor& executor, const char* what) {
  if (executor.backend != Backend::cuda) return {};
  return api::fault(StatusCode::unsupported, std::string(what) + ": not on the CUDA executor");
}

Status interpolate_checked(const Curves& curves, const std::int64_t* curve_of_point, ConstArray points,
                           std::int64_t count, MutableArray out, const Executor& executor) {
  return api::guarded([&]() -> Status {
    if (Status status = host_only(executor, "interpolate"); !status.ok()) return status;
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    if (Status status = api::check_curves(curves); !status.ok()) return status;
    if (count < 0) return api::fault(StatusCode::invalid_argument, "count must not be negative");
    if (!points.present() || (points.data == nullptr && count > 0)) {
      return api::fault(StatusCode::invalid_argument, "points: no array given");
    }
    if (!out.present() || (out.data == nullptr && count > 0)) {
      return api::fault(StatusCode::invalid_argument, "out: no array given");
    }
    return worded(cpu::interpolate(curves, curve_of_point, points, count, out, executor), {});
  });
}

}  // namespace

Status isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out, const Executor& executor) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    const bool on_device = executor.backend == Backend::cuda;
    if (Status status = on_device ? api::check_device_problem(problem) : api::check_problem(problem);
        !status.ok()) {
      return status;
    }
    if (out.fit.present() && out.fit.data == nullptr && problem.rows.total() > 0) {
      return api::fault(StatusCode::invalid_argument, "fit: null pointer");
    }
    if (on_device) return cuda::isotonic_regression(problem, out, executor);
    std::optional<api::TieOrder> ordered;
    if (problem.tie_offsets != nullptr) {
      if (Status status = api::check_elements(problem); !status.ok()) return status;
      ordered.emplace(problem);
    }
    const IsotonicProblem& untied = ordered ? ordered->problem() : problem;
    const Outcome outcome = executor.backend == Backend::reference
                                ? reference::isotonic_regression(untied, out)
                                : cpu::isotonic_regression(untied, out, executor);
    return worded(outcome, problem);
  });
}

Status isotonic_regression_scratch(const IsotonicProblem& problem, std::int64_t* bytes) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_device_problem(problem); !status.ok()) return status;
    return cuda::isotonic_regression_scratch(problem, bytes);
  });
}

Status isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                         ConstArray gradient, const IsotonicGradient& out, const Executor& executor) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    const bool on_device = executor.backend == Backend::cuda;
    if (Status status = on_device ? api::check_device_problem(problem) : api::check_problem(problem);
        !status.ok()) {
      return status;
    }
    if (problem.rows.total() > 0 && block_starts == nullptr) {
      return api::fault(StatusCode::invalid_argument, "block_starts: null pointer");
    }
    if (!on_device) {
      if (Status status = api::check_block_starts(problem, block_starts); !status.ok()) return status;
    }
    if (!gradient.present() || (gradient.data == nullptr && problem.rows.total() > 0)) {
      return api::fault(StatusCode::invalid_argument, "gradient: no array given");
    }
    const auto missing = [&](const MutableArray& array) {
      return array.present() && array.data == nullptr && problem.rows.total() > 0;
    };
    if (missing(out.values)) return api::fault(StatusCode::invalid_argument, "out.values: null pointer");
    if (missing(out.weights)) return api::fault(StatusCode::invalid_argument, "out.weights: null pointer");
    if (on_device) return cuda::isotonic_gradient(problem, block_starts, gradient, out, executor);
    if (Status status = api::check_elements(problem); !status.ok()) return status;
    const Outcome outcome = executor.backend == Backend::reference
                                ? reference::isotonic_gradient(problem, block_starts, gradient, out)
                                : cpu::isotonic_gradient(problem, block_starts, gradient, out, executor);
    return worded(outcome, problem);
  });
}

Status isotonic_gradient_scratch(const IsotonicProblem& problem, std::int64_t* bytes) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_device_problem(problem); !status.ok()) return status;
    return cuda::isotonic_gradient_scratch(problem, bytes);
  });
}

Status block_weights(const IsotonicProblem& problem, const std::uint8_t* block_starts, double* out,
                     const Executor& executor) {
  return api::guarded([&]() -> Status {
    if (Status status = host_only(executor, "block_weights"); !status.ok()) return status;
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    if (Status status = api::check_problem(problem); !status.ok()) return status;
    if (Status status = api::check_block_starts(problem, block_starts); !status.ok()) return status;
    if (out == nullptr && problem.rows.total() > 0) {
      return api::fault(StatusCode::invalid_argument, "out: null pointer");
    }
    if (Status status = api::check_elements(problem); !status.ok()) return status;
    return worded(cpu::block_weights(problem, block_starts, out, executor), problem);
  });
}

Status interpolate(const Knots& knots, ConstArray points, std::int64_t count, MutableArray out,
                   const Executor& executor) {
  const std::int64_t offsets[2] = {0, knots.count};
  return interpolate_checked({knots.x, knots.y, offsets, 1}, nullptr, points, count, out, executor);
}

Status interpolate(const Curves& curves, const std::int64_t* curve_of_point, ConstArray points,
                   std::int64_t count, MutableArray out, const Executor& executor) {
  if (curve_of_point == nullptr && count > 0) {
    return api::fault(StatusCode::invalid_argument, "curve_of_point: null pointer");
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (curve_of_point[i] >= 0 && curve_of_point[i] < curves.count) continue;
    return api::fault(StatusCode::invalid_argument,
                      "curve_of_point: position " + std::to_string(i) + " is " +
                          std::to_string(curve_of_point[i]) + ", and there are " +
                          std::to_string(curves.count) + " curves",
                      -1, i);
  }
  return interpolate_checked(curves, curve_of_point, points, count, out, executor);
}

}  // namespace isofold
