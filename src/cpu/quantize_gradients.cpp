#include <cmath>
#include <limits>
#include <mutex>

#include "algorithm/gradient_grid.hpp"
#include "cpu/parallel.hpp"
#include "cpu/trees.hpp"

namespace isofold::cpu {
namespace {

constexpr std::int64_t kPiece = 16384;

struct One {
  double operator[](std::int64_t) const { return 1.0; }
};

struct Largest {
  double gradient = 0;
  double hessian = 0;
  bool sound = true;
};

// Maxima do not depend on an order, so the grid does not either.
template <class G, class H>
Largest largest_of(const G& gradients, const H& hessians, std::int64_t begin, std::int64_t end) {
  constexpr double kMost = std::numeric_limits<double>::max();
  double gradient = 0;
  double hessian = 0;
  int faults = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const double g = std::fabs(static_cast<double>(gradients[i]));
    const double h = static_cast<double>(hessians[i]);
    gradient = g > gradient ? g : gradient;
    hessian = h > hessian ? h : hessian;
    faults |= static_cast<int>(!(g <= kMost)) | static_cast<int>(!(h >= 0)) | static_cast<int>(!(h <= kMost));
  }
  return {gradient, hessian, faults == 0};
}

template <class G, class H>
Outcome quantize(const G& gradients, const H& hessians, std::int64_t rows, const GradientGrid* given,
                 QuantizedGradient* out, GradientGrid* grid, const Executor& executor) {
  const int threads = thread_count(executor);
  Largest largest;
  std::mutex mutex;
  bool finished =
      parallel_for(executor, threads, rows, kPiece, [&](int, std::int64_t begin, std::int64_t end) {
        const Largest part = largest_of(gradients, hessians, begin, end);
        const std::lock_guard lock(mutex);
        largest.gradient = std::fmax(largest.gradient, part.gradient);
        largest.hessian = std::fmax(largest.hessian, part.hessian);
        largest.sound = largest.sound && part.sound;
      });
  if (!finished) return Outcome::interrupted;
  if (!largest.sound) return Outcome::bad_input;
  const GradientGrid used = given != nullptr ? *given : make_grid(largest.gradient, largest.hessian);
  const Quantizer quantizer(used);
  if (!quantizer.holds(largest.gradient, largest.hessian)) return Outcome::bad_input;
  if (grid != nullptr) *grid = used;
  finished = parallel_for(executor, threads, rows, kPiece, [&](int, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = quantizer(static_cast<double>(gradients[i]), static_cast<double>(hessians[i]));
    }
  });
  return finished ? Outcome::done : Outcome::interrupted;
}

}  // namespace

Outcome quantize_gradients(const GradientProblem& problem, const GradientGrid* given, QuantizedGradient* out,
                           GradientGrid* grid, const Executor& executor) {
  const auto with_hessians = [&](const auto* gradients) {
    const auto call = [&](const auto& hessians) {
      return quantize(gradients, hessians, problem.rows, given, out, grid, executor);
    };
    if (!problem.hessians.present()) return call(One{});
    if (problem.hessians.type == DataType::float32) {
      return call(static_cast<const float*>(problem.hessians.data));
    }
    return call(static_cast<const double*>(problem.hessians.data));
  };
  if (problem.gradients.type == DataType::float32) {
    return with_hessians(static_cast<const float*>(problem.gradients.data));
  }
  return with_hessians(static_cast<const double*>(problem.gradients.data));
}

}  // namespace isofold::cpu
