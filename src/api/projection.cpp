// The public functions of projections: check, choose the executor.
#include "isofold/projection.hpp"

#include <cmath>

#include "api/checks.hpp"
#include "api/guarded.hpp"
#include "cpu/cpu.hpp"
#include "cuda/cuda.hpp"

namespace isofold {
namespace {

Status refused(const char* what) { return api::fault(StatusCode::invalid_argument, what); }

Status check_problem(const ProjectionProblem& problem) {
  if (problem.rows < 0 || problem.length < 0) return refused("rows and length must not be negative");
  if (problem.length > 0 && problem.rows > (std::int64_t{1} << 46) / problem.length) {
    return refused("rows: more than 2^46 elements");
  }
  if (problem.sign != 1.0 && problem.sign != -1.0) return refused("sign must be 1 or -1");
  if (!(problem.strength > 0) || !std::isfinite(problem.strength)) {
    return refused("strength must be positive and finite");
  }
  return {};
}

bool missing(const void* data, DataType type, DataType wanted) { return data == nullptr || type != wanted; }

template <class Call>
Status checked(const ProjectionProblem& problem, const std::uint8_t* block_starts, MutableArray out,
               const Executor& executor, Call&& call) {
  if (Status status = check_problem(problem); !status.ok()) return status;
  if (Status status = api::check_executor(executor); !status.ok()) return status;
  if (executor.backend == Backend::reference) {
    return api::fault(StatusCode::unsupported, "projection: not on the reference executor");
  }
  if (problem.rows == 0 || problem.length == 0) return {};
  if (problem.order == nullptr || block_starts == nullptr || out.data == nullptr) {
    return refused("order, block_starts or out: null pointer");
  }
  if (out.type != DataType::float32 && out.type != DataType::float64) {
    return refused("out must be float32 or float64");
  }
  return api::guarded(call);
}

Status worded(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return {};
    case Outcome::interrupted:
      return api::fault(StatusCode::interrupted, "interrupted by the caller");
    case Outcome::bad_input:
      break;
  }
  return api::fault(StatusCode::not_finite, "sorted / strength must be finite");
}

}  // namespace

Status projection(const ProjectionProblem& problem, ConstArray sorted, MutableArray out,
                  std::uint8_t* block_starts, const Executor& executor) {
  return checked(problem, block_starts, out, executor, [&]() -> Status {
    if (missing(sorted.data, sorted.type, out.type)) return refused("sorted: none of the type of out");
    if (executor.backend == Backend::cuda) {
      return cuda::projection(problem, sorted, out, block_starts, executor);
    }
    return worded(cpu::projection(problem, sorted, out, block_starts, executor));
  });
}

Status projection_gradient(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                           ConstArray result, ConstArray gradient, MutableArray out,
                           const Executor& executor) {
  return checked(problem, block_starts, out, executor, [&]() -> Status {
    if (missing(result.data, result.type, out.type) || missing(gradient.data, gradient.type, out.type)) {
      return refused("result or gradient: none of the type of out");
    }
    if (executor.backend == Backend::cuda) {
      return cuda::projection_gradient(problem, block_starts, result, gradient, out, executor);
    }
    IsotonicProblem rows;
    rows.rows = Rows::rectangle(problem.rows, problem.length);
    if (Status status = api::check_block_starts(rows, block_starts); !status.ok()) return status;
    return worded(cpu::projection_gradient(problem, block_starts, result, gradient, out, executor));
  });
}

Status projection_scratch(const ProjectionProblem& problem, std::int64_t* bytes) {
  if (Status status = check_problem(problem); !status.ok()) return status;
  return cuda::projection_scratch(problem, bytes);
}

Status projection_gradient_scratch(const ProjectionProblem& problem, std::int64_t* bytes) {
  if (Status status = check_problem(problem); !status.ok()) return status;
  return cuda::projection_gradient_scratch(problem, bytes);
}

}  // namespace isofold
