// Projections on the device: elementwise kernels around the fit and its block means, in one call.
#include "algorithm/projection.hpp"

#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/cuda.hpp"
#include "cuda/device_call.hpp"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kMostElements = std::int64_t{1} << 38;  // blocks are counted in 31 bits

// Calls visit(i, where its row begins) for the element of this thread.
template <class Visit>
__device__ void visit_element(const ProjectionProblem& problem, Visit visit) {
  begin_kernel();
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < problem.rows * problem.length) visit(i, i / problem.length * problem.length);
}

template <class T>
__global__ void pose_elements(ProjectionProblem problem, ProjectionArrays<T> arrays) {
  visit_element(problem,
                [&](std::int64_t i, std::int64_t base) { pose_element(problem, arrays, i, i - base); });
}

template <class T>
__global__ void finish_elements(ProjectionProblem problem, ProjectionArrays<T> arrays) {
  visit_element(problem,
                [&](std::int64_t i, std::int64_t base) { finish_element(problem, arrays, i, base); });
}

template <class T>
__global__ void pose_gradients(ProjectionProblem problem, ProjectionGradientArrays<T> arrays) {
  visit_element(problem, [&](std::int64_t i, std::int64_t base) { pose_gradient(problem, arrays, i, base); });
}

template <class T>
__global__ void finish_gradients(ProjectionProblem problem, ProjectionGradientArrays<T> arrays) {
  visit_element(problem,
                [&](std::int64_t i, std::int64_t base) { finish_gradient(problem, arrays, i, base); });
}

template <class Kernel, class Arrays>
Status start(Kernel kernel, const ProjectionProblem& problem, const Arrays& arrays,
             const Executor& executor) {
  const std::int64_t total = problem.rows * problem.length;
  start_kernel(kernel, static_cast<unsigned>((total + kThreads - 1) / kThreads), kThreads, 0,
               static_cast<cudaStream_t>(executor.stream), problem, arrays);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? Status{} : failed(error, "projection on the device");
}

template <class T>
std::int64_t place_arrays(const ProjectionProblem& problem, ProjectionArrays<T>& arrays, void* memory) {
  Carver carver(memory);
  const std::int64_t total = problem.rows * problem.length;
  for (double** array : {&arrays.a, &arrays.b, &arrays.fit, &arrays.mean_a, &arrays.mean_b}) {
    *array = carver.take<double>(total);
  }
  return carver.used();
}

template <class T>
std::int64_t place_arrays(const ProjectionProblem& problem, ProjectionGradientArrays<T>& arrays,
                          void* memory) {
  Carver carver(memory);
  arrays.g = carver.take<double>(problem.rows * problem.length);
  arrays.mean = carver.take<double>(problem.rows * problem.length);
  return carver.used();
}

// What the fit and the means take, one after the other, in the same memory.
Status inner_scratch(const ProjectionProblem& problem, bool with_fit, std::int64_t* bytes) {
  static constexpr double somewhere = 0;
  const IsotonicProblem fit = falling_fit(problem, &somewhere);
  std::int64_t for_fit = 0;
  if (Status status = cuda::isotonic_gradient_scratch(fit, bytes); !status.ok() || !with_fit) return status;
  Status status = cuda::isotonic_regression_scratch(fit, &for_fit);
  *bytes = std::max(*bytes, for_fit);
  return status;
}

Status block_means(const IsotonicProblem& fit, const std::uint8_t* block_starts, const double* x,
                   double* means, const Executor& executor) {
  const IsotonicGradient out{MutableArray{means, DataType::float64}, MutableArray{}};
  return cuda::isotonic_gradient(fit, block_starts, ConstArray{x, DataType::float64}, out, executor);
}

// Calls `use` with the arrays in scratch memory, and an executor that has the rest of it.
template <class Arrays, class Use>
Status with_arrays(const ProjectionProblem& problem, Arrays arrays, bool with_fit, const Executor& executor,
                   Use use) {
  std::int64_t inner = 0;
  if (Status status = inner_scratch(problem, with_fit, &inner); !status.ok()) return status;
  const std::int64_t own = place_arrays(problem, arrays, nullptr);
  return with_scratch(executor, own + inner, [&](void* scratch) -> Status {
    place_arrays(problem, arrays, scratch);
    Executor rest = executor;
    rest.scratch = static_cast<unsigned char*>(scratch) + own;
    rest.scratch_bytes = inner;
    return use(arrays, rest);
  });
}

template <class T>
Status project(const ProjectionProblem& problem, const T* sorted, T* out, std::uint8_t* block_starts,
               const Executor& executor) {
  const auto solve = [&](const ProjectionArrays<T>& arrays, const Executor& rest) -> Status {
    Status status = start(pose_elements<T>, problem, arrays, rest);
    const IsotonicProblem fit = falling_fit(problem, arrays.mean_a);
    const IsotonicFit fitted{MutableArray{arrays.fit, DataType::float64}, block_starts};
    if (status.ok()) status = cuda::isotonic_regression(fit, fitted, rest);
    const IsotonicProblem blocks = falling_fit(problem, arrays.fit);
    if (status.ok()) status = block_means(blocks, block_starts, arrays.a, arrays.mean_a, rest);
    if (status.ok()) status = block_means(blocks, block_starts, arrays.b, arrays.mean_b, rest);
    if (status.ok()) status = start(finish_elements<T>, problem, arrays, rest);
    return status;
  };
  return with_arrays(problem, ProjectionArrays<T>{sorted, out}, true, executor, solve);
}

template <class T>
Status differentiate(const ProjectionProblem& problem, const std::uint8_t* block_starts, const T* result,
                     const T* gradient, T* out, const Executor& executor) {
  const auto solve = [&](const ProjectionGradientArrays<T>& arrays, const Executor& rest) -> Status {
    Status status = start(pose_gradients<T>, problem, arrays, rest);
    if (status.ok()) {
      status = block_means(falling_fit(problem, arrays.g), block_starts, arrays.g, arrays.mean, rest);
    }
    if (status.ok()) status = start(finish_gradients<T>, problem, arrays, rest);
    return status;
  };
  return with_arrays(problem, ProjectionGradientArrays<T>{result, gradient, out}, false, executor, solve);
}

Status check_size(const ProjectionProblem& problem) {
  if (problem.rows <= kMostElements / std::max<std::int64_t>(problem.length, 1)) return {};
  return {StatusCode::unsupported, "rows: the CUDA executor projects up to 2^38 elements", -1, -1};
}

}  // namespace

Status projection(const ProjectionProblem& problem, ConstArray sorted, MutableArray out,
                  std::uint8_t* block_starts, const Executor& executor) {
  if (Status status = check_size(problem); !status.ok()) return status;
  if (out.type == DataType::float32) {
    return project(problem, static_cast<const float*>(sorted.data), static_cast<float*>(out.data),
                   block_starts, executor);
  }
  return project(problem, static_cast<const double*>(sorted.data), static_cast<double*>(out.data),
                 block_starts, executor);
}

Status projection_gradient(const ProjectionProblem& problem, const std::uint8_t* block_starts,
                           ConstArray result, ConstArray gradient, MutableArray out,
                           const Executor& executor) {
  if (Status status = check_size(problem); !status.ok()) return status;
  if (out.type == DataType::float32) {
    return differentiate(problem, block_starts, static_cast<const float*>(result.data),
                         static_cast<const float*>(gradient.data), static_cast<float*>(out.data), executor);
  }
  return differentiate(problem, block_starts, static_cast<const double*>(result.data),
                       static_cast<const double*>(gradient.data), static_cast<double*>(out.data), executor);
}

Status projection_scratch(const ProjectionProblem& problem, std::int64_t* bytes) {
  if (Status status = inner_scratch(problem, true, bytes); !status.ok()) return status;
  ProjectionArrays<double> arrays{};  // the type does not matter
  *bytes += place_arrays(problem, arrays, nullptr);
  return {};
}

Status projection_gradient_scratch(const ProjectionProblem& problem, std::int64_t* bytes) {
  if (Status status = inner_scratch(problem, false, bytes); !status.ok()) return status;
  ProjectionGradientArrays<double> arrays{};
  *bytes += place_arrays(problem, arrays, nullptr);
  return {};
}

}  // namespace isofold::cuda
