// Preconditioned conjugate gradients for a batch of symmetric positive definite systems. Every scalar is an
// exact segment dot, rounded once to float64, so that a system's iterates, iterations and status are those it
// has alone: siblings, their number, order and fate change no bit. The same on every executor.
#pragma once

#include <cstdint>
#include <functional>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/linear_maps.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"

namespace isofold {

enum class CgStatus : std::uint8_t {
  running,                    // only where a callback ended the call
  converged,                  // the true residual is within the tolerance
  max_iterations,             //
  indefinite_operator,        // p . A p <= 0
  indefinite_preconditioner,  // r . M r <= 0
  stagnated,                  // the recursive residual is within the tolerance, the true one is not and no
                              // longer halves from one check to the next; or a residual is too small to
                              // be squared
  not_finite,                 // a NaN or an infinity in b, x, A or M, or an overflow
  empty,                      // no unknowns
};

struct CgProblem {
  Rows systems;              // how the concatenated vectors are cut
  ConstArray right_side;     // b, float32 or float64
  LinearMap matrix;          // A
  LinearMap preconditioner;  // z = M r, about the inverse of A; none: z = r
  // A system has converged when the norm of b - A x is at most max(rtol |b|, atol). One entry a system, or
  // null: the same for all.
  const double* rtol = nullptr;
  const double* atol = nullptr;
  const std::int64_t* max_iterations = nullptr;
  double rtol_of_all = 1e-5;
  double atol_of_all = 0.0;
  std::int64_t max_iterations_of_all = -1;  // -1: a system's own number of unknowns
  // r is computed anew from b - A x after so many iterations, too; 0: only where convergence is checked.
  std::int64_t replace_every = 0;

  // Backend::cuda: the most iterations of any system, which the host may not be able to see: it enqueues
  // as many, and those of finished systems change nothing. -1: what the members above say, or where they say
  // nothing, the number of elements.
  std::int64_t iteration_limit = -1;
  // Backend::cuda: the host waits for the device after so many steps to see whether all systems are done; 0:
  // never. The CPU always sees.
  std::int64_t check_every = 0;
  // Called after every step on the CPU, and with check_every after every check on a device (the results'
  // arrays are then up to date). Returning true ends the call with StatusCode::interrupted.
  std::function<bool(std::int64_t step)> callback;
};

// Caller-owned, of b's type and length.
struct CgVectors {
  void* x = nullptr;  // the first guess; the solution
  void* r = nullptr;  // the four others are for work
  void* z = nullptr;  // may be null without a preconditioner
  void* p = nullptr;
  void* q = nullptr;
};

// One entry a system.
struct CgResult {
  std::int64_t* iterations = nullptr;
  CgStatus* status = nullptr;
  double* residual_norm = nullptr;       // of the recursive residual, when the iterations ended
  double* true_residual_norm = nullptr;  // of b - A x
};

// Executor::scratch must hold conjugate_gradient_scratch bytes of host or device memory; null: allocated.
[[nodiscard]] Status conjugate_gradient(const CgProblem& problem, const CgVectors& vectors,
                                        const CgResult& result, const Executor& executor = {});

[[nodiscard]] Status conjugate_gradient_scratch(const Rows& systems, Backend backend, std::int64_t* bytes);

}  // namespace isofold
