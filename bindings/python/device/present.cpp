// A build with CUDA, on a machine with or without.
#include <cuda_runtime_api.h>

#include <new>
#include <stdexcept>

#include "../device.hpp"

namespace isofold::python {
namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();  // or the next call would find it
  if (error == cudaErrorMemoryAllocation) throw std::bad_alloc();
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

cudaStream_t handle(std::intptr_t stream) {
  return reinterpret_cast<cudaStream_t>(stream);  // NOLINT(performance-no-int-to-ptr): DLPack passes integers
}

}  // namespace

std::string cuda_fault() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return {};
  (void)cudaGetLastError();
  return std::string("this machine has no CUDA that isofold can use (") +
         (error == cudaSuccess ? "no device" : cudaGetErrorString(error)) +
         "): it takes an NVIDIA GPU that this process may see, and a driver no older than the CUDA toolkit "
         "that "
         "isofold was built with";
}

CurrentDevice::CurrentDevice(int device) {
  int current = 0;
  check(cudaGetDevice(&current), "CUDA device");
  if (device == current) return;
  check(cudaSetDevice(device), "CUDA device");
  previous_ = current;
}

CurrentDevice::~CurrentDevice() {
  if (previous_ >= 0) (void)cudaSetDevice(previous_);
}

void* allocate_on_device(std::int64_t bytes, std::intptr_t stream) {
  void* memory = nullptr;
  check(cudaMallocAsync(&memory, static_cast<std::size_t>(bytes), handle(stream)), "device memory");
  return memory;
}

void free_on_device(void* memory, std::intptr_t stream) noexcept {
  (void)cudaFreeAsync(memory, handle(stream));
}

void zero_on_device(void* memory, std::int64_t bytes, std::intptr_t stream) {
  check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(bytes), handle(stream)), "device memory");
}

void set_bytes_on_device(void* memory, std::int64_t size, std::int64_t which, int value, std::int64_t count,
                         std::intptr_t stream) {
  check(cudaMemset2DAsync(static_cast<unsigned char*>(memory) + which, static_cast<std::size_t>(size), value,
                          1, static_cast<std::size_t>(count), handle(stream)),
        "device memory");
}

void order_streams(std::intptr_t earlier, std::intptr_t later) {
  if (earlier == later) return;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "CUDA event");
  cudaError_t error = cudaEventRecord(event, handle(earlier));
  if (error == cudaSuccess) error = cudaStreamWaitEvent(handle(later), event, 0);
  (void)cudaEventDestroy(event);  // once it has happened
  check(error, "CUDA event");
}

}  // namespace isofold::python
