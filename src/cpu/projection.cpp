#include "algorithm/projection.hpp"

#include <algorithm>
#include <memory>

#include "cpu/cpu.hpp"
#include "cpu/parallel.hpp"

namespace isofold::cpu {
namespace {

constexpr std::int64_t kPiece = 1 << 14;  // elements worth a visit to the shared counter

// Memory that is not written before it is used.
std::unique_ptr<double[]> doubles(std::int64_t count) {
  return std::unique_ptr<double[]>(new double[static_cast<std::size_t>(count)]);
}

// Calls body(i, place in the row) for every element; false when stopped.
template <class Body>
bool for_elements(const ProjectionProblem& problem, const Executor& executor, Body body) {
  const std::int64_t total = problem.rows * problem.length;
  const int threads = total <= kPiece ? 1 : thread_count(executor);
  return parallel_for(executor, threads, total, kPiece, [&](int, std::int64_t begin, std::int64_t end) {
    std::int64_t place = begin % problem.length;
    for (std::int64_t i = begin; i < end; ++i) {
      body(i, place);
      if (++place == problem.length) place = 0;
    }
  });
}

Outcome block_means(const IsotonicProblem& fit, const std::uint8_t* block_starts, const double* x,
                    double* means, const Executor& executor) {
  return cpu::isotonic_gradient(fit, block_starts, {x, DataType::float64},
                                {MutableArray{means, DataType::float64}, {}}, executor);
}

template <class T>
Outcome project(const ProjectionProblem& problem, const T* sorted, T* out, std::uint8_t* block_starts,
                const Executor& executor) {
  const std::int64_t total = problem.rows * problem.length;
  const auto memory = doubles(5 * total);
  double* a = memory.get();
  const ProjectionArrays<T> arrays{sorted, out, a, a + total, a + 2 * total, a + 3 * total, a + 4 * total};
  const bool posed = for_elements(problem, executor, [&](std::int64_t i, std::int64_t place) {
    pose_element(problem, arrays, i, place);
  });
  if (!posed) return Outcome::interrupted;
  const IsotonicFit fit{MutableArray{arrays.fit, DataType::float64}, block_starts};
  Outcome outcome = cpu::isotonic_regression(falling_fit(problem, arrays.mean_a), fit, executor);
  const IsotonicProblem blocks = falling_fit(problem, arrays.fit);
  if (outcome == Outcome::done) {
    outcome = block_means(blocks, block_starts, arrays.a, arrays.mean_a, executor);
  }
  if (outcome == Outcome::done) {
    outcome = block_means(blocks, block_starts, arrays.b, arrays.mean_b, executor);
  }
  if (outcome != Outcome::done) return outcome;
  const bool finished = for_elements(problem, executor, [&](std::int64_t i, std::int64_t place) {
    finish_element(problem, arrays, i, i - place);
  });
  return finished ? Outcome::done : Outcome::interrupted;
}

template <class T>
Outcome differentiate(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                      ProjectionGradientArrays<T> arrays, const Executor& executor) {
  const std::int64_t total = problem.rows * problem.length;
  const auto memory = doubles(2 * total);
  arrays.g = memory.get();
  arrays.mean = arrays.g + total;
  const bool posed = for_elements(problem, executor, [&](std::int64_t i, std::int64_t place) {
    pose_gradient(problem, arrays, i, i - place);
  });
  if (!posed) return Outcome::interrupted;
  const Outcome outcome =
      block_means(falling_fit(problem, arrays.g), block_starts, arrays.g, arrays.mean, executor);
  if (outcome != Outcome::done) return outcome;
  const bool finished = for_elements(problem, executor, [&](std::int64_t i, std::int64_t place) {
    finish_gradient(problem, arrays, i, i - place);
  });
  return finished ? Outcome::done : Outcome::interrupted;
}

}  // namespace

Outcome projection(const ProjectionProblem& problem, ConstArray sorted, MutableArray out,
                   std::uint8_t* block_starts, const Executor& executor) {
  if (out.type == DataType::float32) {
    return project(problem, static_cast<const float*>(sorted.data), static_cast<float*>(out.data),
                   block_starts, executor);
  }
  return project(problem, static_cast<const double*>(sorted.data), static_cast<double*>(out.data),
                 block_starts, executor);
}

Outcome projection_gradient(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                            ConstArray result, ConstArray gradient, MutableArray out,
                            const Executor& executor) {
  const auto with = [&]<class T>(T*) {
    return differentiate(
        problem, block_starts,
        ProjectionGradientArrays<T>{static_cast<const T*>(result.data), static_cast<const T*>(gradient.data),
                                    static_cast<T*>(out.data), nullptr, nullptr},
        executor);
  };
  return out.type == DataType::float32 ? with(static_cast<float*>(nullptr))
                                       : with(static_cast<double*>(nullptr));
}

}  // namespace isofold::cpu
