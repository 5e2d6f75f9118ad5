// Conjugate gradients on the device: a thread for every element, or for every system.
#include "cuda/conjugate_gradient.hpp"

#include <cuda_runtime.h>

#include "algorithm/linear_rows.hpp"
#include "cuda/device_call.hpp"
#include "cuda/start_kernel.cuh"
#include "cuda/team.cuh"

namespace isofold::cuda {
namespace {

unsigned blocks_of(std::int64_t threads) { return static_cast<unsigned>((threads + kBlock - 1) / kBlock); }

__device__ std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * kBlock + threadIdx.x;
}

// The row that holds the element, by bisection; some row where offsets do not rise.
__device__ std::int64_t row_of(const Rows& rows, std::int64_t element) {
  if (rows.offsets == nullptr) return element / rows.length;
  std::int64_t low = 0;
  std::int64_t high = rows.count - 1;
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (rows.offsets[middle + 1] <= element) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// ---- A thread for every system ----

__global__ void __launch_bounds__(kBlock) start_systems(const __grid_constant__ CgState state) {
  begin_kernel();
  const std::int64_t s = thread_index();
  if (s >= state.systems.count) return;
  start_system(state.terms(s), s, state.system[s], state.out);
}

__global__ void __launch_bounds__(kBlock)
    systems_after_residual(const __grid_constant__ CgState state, bool last_step) {
  begin_kernel();
  const std::int64_t s = thread_index();
  if (s >= state.systems.count) return;
  after_operator(state.curvature[s], state.system[s]);
  after_residual(state.norm[s], state.inner[s], s, state.replace_every, last_step, state.system[s],
                 state.out);
  if (state.system[s].phase != CgPhase::done) {
    atomicAdd(reinterpret_cast<unsigned long long*>(state.active), 1ULL);
  }
}

// ---- A thread for every element ----

template <class T>
__global__ void __launch_bounds__(kBlock)
    move_elements(const __grid_constant__ CgState state, std::int64_t total) {
  begin_kernel();
  const std::int64_t i = thread_index();
  if (i == 0) *state.active = 0;
  if (i >= total) return;
  // What the step makes of the system is kept by systems_after_residual.
  const std::int64_t s = row_of(state.systems, i);
  CgSystem system = state.system[s];
  after_operator(state.curvature[s], system);
  CgElements<T>(state).move(system, i);
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    direct_elements(const __grid_constant__ CgState state, std::int64_t total) {
  begin_kernel();
  const std::int64_t i = thread_index();
  if (i < total) CgElements<T>(state).direct(state.system[row_of(state.systems, i)], i);
}

template <class T, class V>
__global__ void __launch_bounds__(kBlock)
    apply_compressed(const __grid_constant__ CompressedRows matrix, const T* x, T* y) {
  begin_kernel();
  const std::int64_t i = thread_index();
  if (i < matrix.rows) y[i] = static_cast<T>(compressed_row<T, V>(matrix, x, i));
}

template <class T, class V>
__global__ void __launch_bounds__(kBlock)
    apply_banded(const __grid_constant__ Banded matrix, std::int64_t total, const T* x, T* y) {
  begin_kernel();
  const std::int64_t i = thread_index();
  if (i >= total) return;
  const Rows& systems = matrix.systems;
  const std::int64_t s = row_of(systems, i);
  const std::int64_t begin = systems.offsets != nullptr ? systems.offsets[s] : s * systems.length;
  const std::int64_t end = systems.offsets != nullptr ? systems.offsets[s + 1] : (s + 1) * systems.length;
  if (begin < 0 || begin > i || end <= i || end > total) {  // offsets that do not rise
    y[i] = static_cast<T>(__longlong_as_double(0x7ff8000000000000LL));
    return;
  }
  y[i] = static_cast<T>(
      banded_row(static_cast<const V*>(matrix.values.data), total, matrix.width, x, i, begin, end));
}

template <class T, class V>
__global__ void __launch_bounds__(kBlock)
    apply_blocks(const __grid_constant__ BlockDiagonal matrix, const T* x, T* y) {
  begin_kernel();
  const std::int64_t i = thread_index();
  if (i < matrix.rows) {
    y[i] = static_cast<T>(block_row(static_cast<const V*>(matrix.values.data), matrix.size, x, i));
  }
}

template <class T>
__global__ void __launch_bounds__(kBlock) add_elements(double factor, const T* x, T* y, std::int64_t count) {
  begin_kernel();
  const std::int64_t i = thread_index();
  if (i >= count) return;
  y[i] = static_cast<T>(static_cast<double>(y[i]) + factor * static_cast<double>(x[i]));
}

// ---- Launches ----

template <class Kernel, class... Arguments>
Status launched(Kernel kernel, std::int64_t threads, const Executor& executor,
                const Arguments&... arguments) {
  if (threads == 0) return {};
  start_kernel(kernel, blocks_of(threads), kBlock, 0, static_cast<cudaStream_t>(executor.stream),
               arguments...);
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? Status{} : failed(error, "conjugate gradients on the device");
}

// Calls use(x, y, V{}) with the vectors and a value of the types.
template <class Use>
Status with_types(DataType type, DataType values, const void* x, void* y, Use use) {
  const auto by_value = [&]<class T>(const T* from, T* to) {
    return values == DataType::float32 ? use(from, to, 0.0F) : use(from, to, 0.0);
  };
  if (type == DataType::float32) return by_value(static_cast<const float*>(x), static_cast<float*>(y));
  return by_value(static_cast<const double*>(x), static_cast<double*>(y));
}

}  // namespace

Status cg_start(const CgState& state, const Executor& executor) {
  return launched(start_systems, state.systems.count, executor, state);
}

Status cg_after_residual(const CgState& state, bool last_step, const Executor& executor) {
  return launched(systems_after_residual, state.systems.count, executor, state, last_step);
}

Status cg_move(const CgState& state, const Executor& executor) {
  const std::int64_t total = state.systems.total();
  return state.type == DataType::float32 ? launched(move_elements<float>, total, executor, state, total)
                                         : launched(move_elements<double>, total, executor, state, total);
}

Status cg_direct(const CgState& state, const Executor& executor) {
  const std::int64_t total = state.systems.total();
  return state.type == DataType::float32 ? launched(direct_elements<float>, total, executor, state, total)
                                         : launched(direct_elements<double>, total, executor, state, total);
}

Status cg_active(const CgState& state, const Executor& executor, std::int64_t* active) {
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  cudaError_t error = cudaMemcpyAsync(active, state.active, sizeof *active, cudaMemcpyDeviceToHost, stream);
  if (error == cudaSuccess) error = cudaStreamSynchronize(stream);
  return error == cudaSuccess ? Status{} : failed(error, "conjugate gradients on the device");
}

Status apply(const CompressedRows& matrix, DataType type, const void* x, void* y, const Executor& executor) {
  return with_types(type, matrix.values.type, x, y, [&]<class T, class V>(const T* from, T* to, V) {
    return launched(apply_compressed<T, V>, matrix.rows, executor, matrix, from, to);
  });
}

Status apply(const Banded& matrix, DataType type, const void* x, void* y, const Executor& executor) {
  const std::int64_t total = matrix.systems.total();
  return with_types(type, matrix.values.type, x, y, [&]<class T, class V>(const T* from, T* to, V) {
    return launched(apply_banded<T, V>, total, executor, matrix, total, from, to);
  });
}

Status apply(const BlockDiagonal& matrix, DataType type, const void* x, void* y, const Executor& executor) {
  return with_types(type, matrix.values.type, x, y, [&]<class T, class V>(const T* from, T* to, V) {
    return launched(apply_blocks<T, V>, matrix.rows, executor, matrix, from, to);
  });
}

Status add_scaled(DataType type, double factor, const void* x, void* y, std::int64_t count,
                  const Executor& executor) {
  return with_types(type, type, x, y, [&]<class T, class V>(const T* from, T* to, V) {
    return launched(add_elements<T>, count, executor, factor, from, to, count);
  });
}

Status with_device_scratch(const Executor& executor, std::int64_t bytes,
                           const std::function<Status(void*)>& use) {
  return with_scratch(executor, bytes, use);
}

}  // namespace isofold::cuda
