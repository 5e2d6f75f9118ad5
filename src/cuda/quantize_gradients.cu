// Gradients on a grid, on the device: the largest magnitudes, the grid they give, each row's place on it.
#include <cuda_runtime.h>

#include <bit>
#include <cmath>
#include <limits>

#include "algorithm/gradient_grid.hpp"
#include "cuda/device_call.hpp"
#include "cuda/start_kernel.cuh"
#include "cuda/trees.hpp"

namespace isofold::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsAThread = 8;

using Bits = unsigned long long;
struct Ones {};

// Bits of doubles that are not negative are in the order of the doubles.
struct Largest {
  Bits gradient;
  Bits hessian;
  int fault;
};

template <class H>
__device__ double hessian_at(const H* hessians, std::int64_t row) {
  if constexpr (std::is_same_v<H, Ones>) {
    return 1.0;
  } else {
    return static_cast<double>(hessians[row]);
  }
}

__device__ bool usable(double gradient, double hessian) {
  constexpr double kMost = std::numeric_limits<double>::max();
  return std::fabs(gradient) <= kMost && hessian >= 0 && hessian <= kMost;
}

__device__ Bits warp_most(Bits mine) {
  for (int step = 16; step > 0; step /= 2) {
    const Bits other = __shfl_xor_sync(0xffffffffU, mine, step);
    mine = other > mine ? other : mine;
  }
  return mine;
}

template <class G, class H>
__global__ void __launch_bounds__(kThreads)
    find_largest(const G* gradients, const H* hessians, std::int64_t rows, Largest* largest) {
  begin_kernel();
  Bits gradient = 0;
  Bits hessian = 0;
  bool fault = false;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kRowsAThread + threadIdx.x;
  for (int k = 0; k < kRowsAThread; ++k) {
    const std::int64_t row = first + std::int64_t{k} * kThreads;
    if (row >= rows) break;
    const auto g = static_cast<double>(gradients[row]);
    const double h = hessian_at(hessians, row);
    if (!usable(g, h)) {
      fault = true;
      continue;
    }
    const auto g_bits = std::bit_cast<Bits>(std::fabs(g));
    const auto h_bits = std::bit_cast<Bits>(h + 0.0);  // a zero may be negative
    gradient = g_bits > gradient ? g_bits : gradient;
    hessian = h_bits > hessian ? h_bits : hessian;
  }
  gradient = warp_most(gradient);
  hessian = warp_most(hessian);
  const bool any = __any_sync(0xffffffffU, static_cast<int>(fault)) != 0;
  if (threadIdx.x % 32 != 0) return;
  // Most warps find nothing larger than what is there.
  if (gradient > __ldcg(&largest->gradient)) atomicMax(&largest->gradient, gradient);
  if (hessian > __ldcg(&largest->hessian)) atomicMax(&largest->hessian, hessian);
  if (any) largest->fault = 1;  // whoever stores it stores the same
}

__global__ void choose_grid(const Largest* largest, const GradientGrid* given, GradientGrid* grid) {
  begin_kernel();
  if (threadIdx.x != 0) return;
  GradientGrid chosen =
      make_grid(std::bit_cast<double>(largest->gradient), std::bit_cast<double>(largest->hessian));
  if (given != nullptr) {
    const GradientGrid wanted = *given;
    chosen = wanted.fault == 0 && sound(wanted) ? wanted : GradientGrid{0, 0, 1};
  }
  if (largest->fault != 0) chosen.fault = 1;
  *grid = chosen;
}

template <class G, class H>
__global__ void __launch_bounds__(kThreads)
    quantize_rows(const G* gradients, const H* hessians, std::int64_t rows, QuantizedGradient* out,
                  GradientGrid* grid) {
  begin_kernel();
  const Quantizer quantizer(*grid);
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kThreads * kRowsAThread + threadIdx.x;
  for (int k = 0; k < kRowsAThread; ++k) {
    const std::int64_t row = first + std::int64_t{k} * kThreads;
    if (row >= rows) return;
    const auto g = static_cast<double>(gradients[row]);
    const double h = hessian_at(hessians, row);
    QuantizedGradient q{0, 0};
    if (usable(g, h) && quantizer.holds(g, h)) {
      q = quantizer(g, h);
    } else {
      grid->fault = 1;  // whoever stores it stores the same
    }
    out[row] = q;
  }
}

template <class G, class H>
cudaError_t launch(const G* gradients, const H* hessians, std::int64_t rows, const GradientGrid* given,
                   QuantizedGradient* out, GradientGrid* grid, Largest* largest, cudaStream_t stream) {
  if (const cudaError_t error = cudaMemsetAsync(largest, 0, sizeof(Largest), stream); error != cudaSuccess) {
    return error;
  }
  constexpr std::int64_t kABlock = kThreads * kRowsAThread;
  const auto blocks = static_cast<unsigned>((rows + kABlock - 1) / kABlock);
  if (rows > 0)
    start_kernel(find_largest<G, H>, blocks, kThreads, 0, stream, gradients, hessians, rows, largest);
  start_kernel(choose_grid, 1, 32, 0, stream, static_cast<const Largest*>(largest), given, grid);
  if (rows > 0) {
    start_kernel(quantize_rows<G, H>, blocks, kThreads, 0, stream, gradients, hessians, rows, out, grid);
  }
  return cudaGetLastError();
}

}  // namespace

Status quantize_gradients(const GradientProblem& problem, const GradientGrid* given, QuantizedGradient* out,
                          GradientGrid* grid, const Executor& executor) {
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  Carver counted(nullptr);
  counted.take<Largest>(1);
  return with_scratch(executor, counted.used(), [&](void* scratch) -> Status {
    auto* largest = static_cast<Largest*>(scratch);
    const auto with_hessians = [&](const auto* gradients) {
      const auto call = [&](const auto* hessians) {
        return launch(gradients, hessians, problem.rows, given, out, grid, largest, stream);
      };
      if (!problem.hessians.present()) return call(static_cast<const Ones*>(nullptr));
      if (problem.hessians.type == DataType::float32) {
        return call(static_cast<const float*>(problem.hessians.data));
      }
      return call(static_cast<const double*>(problem.hessians.data));
    };
    const cudaError_t error = problem.gradients.type == DataType::float32
                                  ? with_hessians(static_cast<const float*>(problem.gradients.data))
                                  : with_hessians(static_cast<const double*>(problem.gradients.data));
    return error == cudaSuccess ? Status{} : failed(error, "gradients on the device");
  });
}

}  // namespace isofold::cuda
