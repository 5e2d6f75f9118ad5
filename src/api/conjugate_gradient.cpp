// Conjugate gradients: the loop, whose steps lie in the executors. See algorithm/cg_system.hpp for what a
// system does in a step.
#include "isofold/conjugate_gradient.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "algorithm/cg_state.hpp"
#include "api/checks.hpp"
#include "api/guarded.hpp"
#include "cpu/conjugate_gradient.hpp"
#include "cuda/conjugate_gradient.hpp"
#include "cuda/cuda.hpp"
#include "isofold/segmented.hpp"

namespace isofold {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Where a solve's own memory lies.
struct Scratch {
  std::int64_t systems;
  std::int64_t doubles;  // four arrays, one entry a system
  std::int64_t active;
  std::int64_t dots;  // of the segment reductions
  std::int64_t bytes;
};

Status scratch_for(const Rows& systems, Backend backend, Scratch* scratch) {
  std::int64_t dots = 0;
  if (backend == Backend::cuda) {
    if (Status status = segment_reductions_scratch(systems, 2, &dots); !status.ok()) return status;
  }
  const std::int64_t count = systems.count;
  scratch->systems = 0;
  scratch->doubles = aligned(count * static_cast<std::int64_t>(sizeof(CgSystem)));
  scratch->active = scratch->doubles + 4 * aligned(count * 8);
  scratch->dots = scratch->active + kAlignment;
  scratch->bytes = scratch->dots + aligned(dots);
  return {};
}

Status refused(const std::string& message) { return api::fault(StatusCode::invalid_argument, message); }

Status check_cg(const CgProblem& problem, const CgVectors& vectors, const CgResult& result) {
  const DataType type = problem.right_side.type;
  if (type != DataType::float32 && type != DataType::float64) {
    return refused("right_side: conjugate gradients take float32 and float64");
  }
  if (!problem.matrix) return refused("matrix: no linear map given");
  const bool any = problem.systems.total() > 0;
  const auto missing = [&](const void* pointer) { return any && pointer == nullptr; };
  if (missing(problem.right_side.data)) return refused("right_side: null pointer");
  if (missing(vectors.x) || missing(vectors.r) || missing(vectors.p) || missing(vectors.q) ||
      (problem.preconditioner && missing(vectors.z))) {
    return refused("vectors: null pointer");
  }
  if (problem.systems.count > 0 &&
      (result.iterations == nullptr || result.status == nullptr || result.residual_norm == nullptr ||
       result.true_residual_norm == nullptr)) {
    return refused("result: null pointer");
  }
  if (!(problem.rtol_of_all >= 0.0) || !(problem.atol_of_all >= 0.0)) {
    return refused("tolerances must not be negative");
  }
  if (problem.replace_every < 0 || problem.check_every < 0) {
    return refused("replace_every and check_every must not be negative");
  }
  return {};
}

// The executors' passes, by one name.
class Passes {
 public:
  Passes(const CgState& state, const Executor& executor) : state_(state), executor_(executor) {}

  [[nodiscard]] Status start() const {
    if (on_device()) return cuda::cg_start(state_, executor_);
    cpu::cg_start(state_);
    return {};
  }
  [[nodiscard]] Status after_operator() const {
    if (!on_device()) cpu::cg_after_operator(state_);
    return {};
  }
  [[nodiscard]] Status after_residual(bool last_step) const {
    if (on_device()) return cuda::cg_after_residual(state_, last_step, executor_);
    cpu::cg_after_residual(state_, last_step);
    return {};
  }
  [[nodiscard]] Status move() const {
    return on_device() ? cuda::cg_move(state_, executor_) : worded(cpu::cg_move(state_, executor_));
  }
  [[nodiscard]] Status direct() const {
    return on_device() ? cuda::cg_direct(state_, executor_) : worded(cpu::cg_direct(state_, executor_));
  }
  [[nodiscard]] Status active(std::int64_t* count) const {
    if (on_device()) return cuda::cg_active(state_, executor_, count);
    *count = *state_.active;
    return {};
  }
  [[nodiscard]] bool on_device() const { return executor_.backend == Backend::cuda; }

 private:
  static Status worded(Outcome outcome) {
    if (outcome == Outcome::done) return {};
    return api::fault(StatusCode::interrupted, "interrupted by the caller");
  }

  const CgState& state_;
  const Executor& executor_;
};

class Solve {
 public:
  Solve(const CgProblem& problem, const CgState& state, const Executor& executor, const Executor& reducer)
      : problem_(problem), state_(state), executor_(executor), reducer_(reducer), passes_(state, executor) {}

  [[nodiscard]] Status run() {
    if (Status status = begin(); !status.ok()) return status;
    if (state_.systems.total() == 0) return {};
    const std::int64_t steps = most_steps();
    for (std::int64_t step = 0; step < steps; ++step) {
      if (Status status = one_step(step + 2 == steps); !status.ok()) return status;
      const bool looks =
          !passes_.on_device() || (problem_.check_every > 0 && (step + 1) % problem_.check_every == 0);
      if (!looks) continue;
      std::int64_t active = 0;
      if (Status status = passes_.active(&active); !status.ok()) return status;
      if (problem_.callback && problem_.callback(step)) {
        return api::fault(StatusCode::interrupted, "interrupted by the callback");
      }
      if (active == 0) return {};
    }
    return {};
  }

 private:
  [[nodiscard]] Status begin() {
    if (Status status = segment_norm(problem_.right_side, state_.systems, state_.right_side_norm, reducer_);
        !status.ok()) {
      return status;
    }
    if (Status status = passes_.start(); !status.ok()) return status;
    return passes_.direct();  // p = x
  }

  [[nodiscard]] Status one_step(bool last_step) {
    const DataType type = state_.type;
    const ConstArray r{state_.r, type};
    if (Status status = problem_.matrix(state_.p, state_.q, executor_); !status.ok()) return status;
    const SegmentReduction curvature{SegmentValue::dot, {state_.p, type}, {state_.q, type}, state_.curvature};
    if (Status status = reduce(&curvature, 1); !status.ok()) return status;
    if (Status status = passes_.after_operator(); !status.ok()) return status;
    if (Status status = passes_.move(); !status.ok()) return status;
    if (problem_.preconditioner) {
      if (Status status = problem_.preconditioner(state_.r, state_.z, executor_); !status.ok()) return status;
    }
    const SegmentReduction both[] = {{SegmentValue::norm, r, {}, state_.norm},
                                     {SegmentValue::dot, r, {state_.z, type}, state_.inner}};
    if (Status status = reduce(both, 2); !status.ok()) return status;
    if (Status status = passes_.after_residual(last_step); !status.ok()) return status;
    return passes_.direct();
  }

  // On a device in the scratch that the norm of b has prepared.
  [[nodiscard]] Status reduce(const SegmentReduction* reductions, std::int64_t count) const {
    if (!passes_.on_device()) return segment_reductions(reductions, count, state_.systems, reducer_);
    return cuda::segment_reductions(reductions, count, state_.systems, reducer_, true);
  }

  // The first check, the iterations, the checks of small and of replaced residuals, and the last one.
  [[nodiscard]] std::int64_t most_steps() const {
    // Nobody gets as far as that, and the sum below stays within 64 bits.
    const std::int64_t most = std::min(most_iterations(), std::int64_t{1} << 61);
    const std::int64_t replaced = state_.replace_every > 0 ? most / state_.replace_every : 0;
    return most + replaced + kMostClaims + 4;
  }

  [[nodiscard]] std::int64_t most_iterations() const {
    if (problem_.iteration_limit >= 0) return problem_.iteration_limit;
    const Rows& systems = state_.systems;
    const bool seen = !passes_.on_device();
    if (problem_.max_iterations == nullptr) {
      if (problem_.max_iterations_of_all >= 0) return problem_.max_iterations_of_all;
      if (systems.offsets == nullptr) return systems.length;
    }
    if (!seen) return systems.total();
    std::int64_t most = 0;
    for (std::int64_t s = 0; s < systems.count; ++s) {
      const std::int64_t own = problem_.max_iterations != nullptr ? problem_.max_iterations[s] : -1;
      most = std::max(most, own >= 0 ? own : systems.end(s) - systems.begin(s));
    }
    return most;
  }

  const CgProblem& problem_;
  const CgState& state_;
  const Executor& executor_;
  Executor reducer_;  // with the scratch of the reductions
  Passes passes_;
};

Status solve(const CgProblem& problem, const CgVectors& vectors, const CgResult& result,
             const Executor& executor, const Scratch& scratch, unsigned char* memory) {
  CgState state;
  state.systems = problem.systems;
  state.type = problem.right_side.type;
  state.b = problem.right_side.data;
  state.x = vectors.x;
  state.r = vectors.r;
  state.z = problem.preconditioner ? vectors.z : vectors.r;
  state.p = vectors.p;
  state.q = vectors.q;
  state.rtol = problem.rtol;
  state.atol = problem.atol;
  state.max_iterations = problem.max_iterations;
  state.rtol_of_all = problem.rtol_of_all;
  state.atol_of_all = problem.atol_of_all;
  state.max_iterations_of_all = problem.max_iterations_of_all;
  state.replace_every = problem.replace_every;
  state.system = reinterpret_cast<CgSystem*>(memory + scratch.systems);
  double** arrays[] = {&state.right_side_norm, &state.curvature, &state.norm, &state.inner};
  const std::int64_t each = (scratch.active - scratch.doubles) / 4;
  for (int k = 0; k < 4; ++k) *arrays[k] = reinterpret_cast<double*>(memory + scratch.doubles + k * each);
  state.active = reinterpret_cast<std::int64_t*>(memory + scratch.active);
  state.out = {result.iterations, result.status, result.residual_norm, result.true_residual_norm};
  Executor reducer = executor;
  reducer.scratch = nullptr;
  if (executor.backend == Backend::cuda) {
    reducer.scratch = memory + scratch.dots;
    reducer.scratch_bytes = scratch.bytes - scratch.dots;
  }
  return Solve(problem, state, executor, reducer).run();
}

}  // namespace

Status conjugate_gradient(const CgProblem& problem, const CgVectors& vectors, const CgResult& result,
                          const Executor& executor) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    const bool on_device = executor.backend == Backend::cuda;
    if (Status status =
            on_device ? api::check_device_rows(problem.systems) : api::check_rows(problem.systems);
        !status.ok()) {
      return status;
    }
    if (Status status = check_cg(problem, vectors, result); !status.ok()) return status;
    if (problem.systems.count == 0) return {};
    Scratch scratch{};
    if (Status status = scratch_for(problem.systems, executor.backend, &scratch); !status.ok()) return status;
    const auto use = [&](void* memory) {
      return solve(problem, vectors, result, executor, scratch, static_cast<unsigned char*>(memory));
    };
    if (on_device) return cuda::with_device_scratch(executor, scratch.bytes, use);
    if (executor.scratch != nullptr) {
      if (executor.scratch_bytes < scratch.bytes) {
        return refused("scratch: " + std::to_string(scratch.bytes) +
                       " bytes are needed, and scratch_bytes is " + std::to_string(executor.scratch_bytes));
      }
      return use(executor.scratch);
    }
    std::vector<double> memory(static_cast<std::size_t>(scratch.bytes / 8 + 1));
    return use(memory.data());
  });
}

Status conjugate_gradient_scratch(const Rows& systems, Backend backend, std::int64_t* bytes) {
  return api::guarded([&]() -> Status {
    Scratch scratch{};
    if (Status status = scratch_for(systems, backend, &scratch); !status.ok()) return status;
    *bytes = scratch.bytes;
    return {};
  });
}

}  // namespace isofold
