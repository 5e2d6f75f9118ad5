// What the executors share of a batch of conjugate gradients: where everything lies, and the arithmetic of
// one element. Vectors are float32 or float64; an element is computed in float64 and rounded once to its
// type.
#pragma once

#include <cstdint>

#include "algorithm/cg_system.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// As Rows has them, on a device too.
ISOFOLD_HOST_DEVICE inline std::int64_t row_begin(const Rows& rows, std::int64_t row) {
  return rows.offsets != nullptr ? rows.offsets[row] : row * rows.length;
}
ISOFOLD_HOST_DEVICE inline std::int64_t row_end(const Rows& rows, std::int64_t row) {
  return rows.offsets != nullptr ? rows.offsets[row + 1] : (row + 1) * rows.length;
}

struct CgState {
  Rows systems;
  DataType type = DataType::float64;
  const void* b = nullptr;
  void* x = nullptr;
  void* r = nullptr;
  void* z = nullptr;  // r's, without a preconditioner
  void* p = nullptr;
  void* q = nullptr;

  const double* rtol = nullptr;  // null: rtol_of_all, and so on
  const double* atol = nullptr;
  const std::int64_t* max_iterations = nullptr;
  double rtol_of_all = 0.0;
  double atol_of_all = 0.0;
  std::int64_t max_iterations_of_all = -1;
  std::int64_t replace_every = 0;

  // By system.
  CgSystem* system = nullptr;
  double* right_side_norm = nullptr;
  double* curvature = nullptr;  // p . q
  double* norm = nullptr;       // |r|
  double* inner = nullptr;      // r . z
  CgOutputs out{};
  std::int64_t* active = nullptr;  // how many systems are not done

  [[nodiscard]] ISOFOLD_HOST_DEVICE CgTerms terms(std::int64_t s) const {
    return {right_side_norm[s],
            rtol != nullptr ? rtol[s] : rtol_of_all,
            atol != nullptr ? atol[s] : atol_of_all,
            max_iterations != nullptr ? max_iterations[s] : max_iterations_of_all,
            row_end(systems, s) - row_begin(systems, s),
            type == DataType::float32 ? 0x1p-126 : 0x1p-500};
  }
};

template <class T>
struct CgElements {
  const T* b;
  T* x;
  T* r;
  T* z;
  T* p;
  T* q;

  ISOFOLD_HOST_DEVICE explicit CgElements(const CgState& state)
      : b(static_cast<const T*>(state.b)),
        x(static_cast<T*>(state.x)),
        r(static_cast<T*>(state.r)),
        z(static_cast<T*>(state.z)),
        p(static_cast<T*>(state.p)),
        q(static_cast<T*>(state.q)) {}

  // x and r after a step of this system, or b - A x.
  ISOFOLD_HOST_DEVICE void move(const CgSystem& system, std::int64_t i) const {
    if (system.was == CgPhase::checking) {
      r[i] = static_cast<T>(static_cast<double>(b[i]) - static_cast<double>(q[i]));
    } else if (system.phase == CgPhase::iterating) {
      x[i] = static_cast<T>(static_cast<double>(x[i]) + system.alpha * static_cast<double>(p[i]));
      r[i] = static_cast<T>(static_cast<double>(r[i]) - system.alpha * static_cast<double>(q[i]));
    }
  }

  // What the operator is applied to next.
  ISOFOLD_HOST_DEVICE void direct(const CgSystem& system, std::int64_t i) const {
    if (system.phase == CgPhase::checking) {
      p[i] = x[i];
    } else if (system.phase == CgPhase::iterating) {
      p[i] = system.beta == 0.0
                 ? z[i]
                 : static_cast<T>(static_cast<double>(z[i]) + system.beta * static_cast<double>(p[i]));
    }
  }
};

}  // namespace isofold
