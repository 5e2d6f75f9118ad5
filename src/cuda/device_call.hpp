// What every call on a device does on the host: errors, the device's limits, scratch memory.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <string>

#include "isofold/executor.hpp"
#include "isofold/status.hpp"

namespace isofold::cuda {

inline Status failed(cudaError_t error, const char* what) {
  const StatusCode code =
      error == cudaErrorMemoryAllocation ? StatusCode::out_of_memory : StatusCode::device_error;
  return {code, std::string(what) + ": " + cudaGetErrorString(error), -1, -1};
}

// Whether the current device gives a block the shared memory that the kernels of `what` take.
inline Status check_device(std::int64_t needed, const char* what) {
  int device = 0;
  int available = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&available, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (error != cudaSuccess) return failed(error, "CUDA device");
  if (available >= needed) return {};
  return {StatusCode::unsupported,
          "this GPU gives a block " + std::to_string(available) + " bytes of shared memory; " + what +
              " of these types need " + std::to_string(needed),
          -1, -1};
}

// Hands out aligned pieces of a block of memory, or only counts them when there is none.
class Carver {
 public:
  explicit Carver(void* memory) : base_(static_cast<unsigned char*>(memory)) {}

  template <class T>
  T* take(std::int64_t count) {
    constexpr std::int64_t kAlignment = 256;
    T* result = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    used_ += (count * static_cast<std::int64_t>(sizeof(T)) + kAlignment - 1) / kAlignment * kAlignment;
    return result;
  }
  [[nodiscard]] std::int64_t used() const { return used_; }

 private:
  unsigned char* base_;
  std::int64_t used_ = 0;
};

// Calls `use` with `bytes` of device memory: the caller's, or some allocated in stream order.
template <class Use>
Status with_scratch(const Executor& executor, std::int64_t bytes, Use use) {
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  void* scratch = executor.scratch;
  if (scratch != nullptr && executor.scratch_bytes < bytes) {
    return {StatusCode::invalid_argument,
            "scratch: " + std::to_string(bytes) + " bytes are needed, and scratch_bytes is " +
                std::to_string(executor.scratch_bytes),
            -1, -1};
  }
  const bool owned = scratch == nullptr && bytes > 0;
  if (owned) {
    if (const cudaError_t error = cudaMallocAsync(&scratch, static_cast<std::size_t>(bytes), stream);
        error != cudaSuccess) {
      return failed(error, "device scratch");
    }
  }
  Status status = use(scratch);
  if (owned) {
    const cudaError_t freed = cudaFreeAsync(scratch, stream);
    if (status.ok() && freed != cudaSuccess) return failed(freed, "device scratch");
  }
  return status;
}

}  // namespace isofold::cuda
