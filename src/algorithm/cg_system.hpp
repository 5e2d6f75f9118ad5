// One system of a batch of conjugate gradients: what its scalars do after each dot product. Host and device.
//
// All systems go in step: q = A p; then p . q; new x and r; z = M r; |r| and r . z; the new p. A system that
// checks its true residual has p = x in that step, so that q = A x and r = b - q; the first step of all is
// such a check, of the first guess.
#pragma once

#include <cstdint>

#include "exact/digit_accumulator.hpp"
#include "exact/host_device.hpp"
#include "isofold/conjugate_gradient.hpp"

namespace isofold {

enum class CgPhase : std::uint8_t {
  iterating,  // p is a direction
  checking,   // p is x
  done,
};

// Checks of a residual that seemed small and was not, before a system is given up.
inline constexpr int kMostClaims = 6;

struct CgSystem {
  double rho = 0.0;  // r . z
  double alpha = 0.0;
  double beta = 0.0;
  double tolerance = 0.0;
  double smallest = 0.0;   // below it a residual's square, or its elements, lose their last bits
  double last_true = 0.0;  // norm at the last check
  std::int64_t most_iterations = 0;
  std::int64_t iterations = 0;
  int claims = 0;
  CgPhase phase = CgPhase::checking;
  CgPhase was = CgPhase::checking;       // in this step, before after_operator gave up
  CgStatus pending = CgStatus::running;  // what a check that fails ends with; running: it goes on
  bool claimed = false;                  // the check is one of a residual that seemed small

  // The step's next p: x for a check, z + beta p for an iteration, else as it is.
  ISOFOLD_HOST_DEVICE void check_next(CgStatus otherwise, bool claim) {
    phase = CgPhase::checking;
    pending = otherwise;
    claimed = claim;
  }
};

// What a system is told before the first step.
struct CgTerms {
  double right_side_norm;
  double rtol;
  double atol;
  std::int64_t most_iterations;  // -1: the length
  std::int64_t length;
  double smallest;
};

struct CgOutputs {
  std::int64_t* iterations;
  CgStatus* status;
  double* residual_norm;
  double* true_residual_norm;
};

ISOFOLD_HOST_DEVICE inline void start_system(const CgTerms& terms, std::int64_t index, CgSystem& system,
                                             const CgOutputs& out) {
  system = CgSystem{};
  // A norm beyond doubles is no measure: all residuals would be small.
  const double relative = is_finite(terms.right_side_norm) ? terms.rtol * terms.right_side_norm : 0.0;
  system.tolerance = relative > terms.atol ? relative : terms.atol;
  system.smallest = terms.smallest;
  system.most_iterations = terms.most_iterations >= 0 ? terms.most_iterations : terms.length;
  out.iterations[index] = 0;
  out.status[index] = CgStatus::running;
  out.residual_norm[index] = 0.0;
  out.true_residual_norm[index] = 0.0;
  if (terms.length == 0) {
    system.phase = CgPhase::done;
    out.status[index] = CgStatus::empty;
  }
}

// After q = A p and p . q: the step length.
ISOFOLD_HOST_DEVICE inline void after_operator(double curvature, CgSystem& system) {
  system.alpha = 0.0;
  system.was = system.phase;
  if (system.phase != CgPhase::iterating) return;
  if (!is_finite(curvature)) {
    system.check_next(CgStatus::not_finite, false);
  } else if (curvature <= 0.0) {
    system.check_next(CgStatus::indefinite_operator, false);
  } else {
    system.alpha = system.rho / curvature;
    if (!is_finite(system.alpha)) system.check_next(CgStatus::not_finite, false);
  }
}

// After |r| and r . z: what the system does next. last_step: a check, whatever comes of it.
ISOFOLD_HOST_DEVICE inline void after_residual(double norm, double inner, std::int64_t index,
                                               std::int64_t replace_every, bool last_step, CgSystem& system,
                                               const CgOutputs& out) {
  system.beta = 0.0;
  const CgPhase was = system.was;
  if (was == CgPhase::done) return;
  if (was == CgPhase::iterating && system.phase == CgPhase::checking) return;  // after_operator gave up
  bool restarts = false;
  if (was == CgPhase::checking) {
    const bool first = out.iterations[index] == 0 && system.claims == 0;
    out.true_residual_norm[index] = norm;
    if (first) out.residual_norm[index] = norm;
    CgStatus ends = system.pending;
    if (!is_finite(norm)) {
      ends = CgStatus::not_finite;
    } else if (norm <= system.tolerance) {
      ends = CgStatus::converged;
    } else if (system.pending == CgStatus::running && system.iterations >= system.most_iterations) {
      ends = CgStatus::max_iterations;
    } else if (system.pending == CgStatus::running && norm < system.smallest) {
      ends = CgStatus::stagnated;
    } else if (system.claimed &&
               ((system.claims > 0 && norm > 0.5 * system.last_true) || system.claims >= kMostClaims)) {
      ends = CgStatus::stagnated;
    }
    if (ends != CgStatus::running) {
      system.phase = CgPhase::done;
      out.status[index] = ends;
      return;
    }
    if (system.claimed) {
      ++system.claims;
      system.last_true = norm;
    }
    system.phase = CgPhase::iterating;
    restarts = true;
  } else {
    ++system.iterations;
    out.iterations[index] = system.iterations;
    out.residual_norm[index] = norm;
    if (!is_finite(norm)) return system.check_next(CgStatus::not_finite, false);
    if (norm <= system.tolerance || norm < system.smallest) return system.check_next(CgStatus::running, true);
    if (system.iterations >= system.most_iterations)
      return system.check_next(CgStatus::max_iterations, false);
    if (replace_every > 0 && system.iterations % replace_every == 0) {
      return system.check_next(CgStatus::running, false);
    }
  }
  if (last_step) return system.check_next(CgStatus::max_iterations, false);
  if (!is_finite(inner)) return system.check_next(CgStatus::not_finite, false);
  if (inner <= 0.0) return system.check_next(CgStatus::indefinite_preconditioner, false);
  system.beta = restarts ? 0.0 : inner / system.rho;
  if (!is_finite(system.beta)) return system.check_next(CgStatus::not_finite, false);
  system.rho = inner;
}

}  // namespace isofold
