// How kernels are started: on a device, or thread by thread on the host (tests/emulator).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace isofold::cuda {

// From compute capability 9.0 on a kernel's blocks take their places while the kernel before still runs, and
// wait for its end: the first thing that every kernel does, so that nothing is read before it is written and
// kernels end in order.
__device__ inline void wait_for_kernel_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
__device__ inline void let_next_kernel_start() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void begin_kernel() {
  wait_for_kernel_before();
  let_next_kernel_start();
}

#if defined(__CUDACC__)
inline bool kernels_overlap() {
  int device = 0;
  int major = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
         major >= 9;
}
#endif

// Errors are the runtime's last error.
template <class... Parameters, class... Arguments>
void start_kernel(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, std::size_t shared_bytes,
                  cudaStream_t stream, const Arguments&... arguments) {
#if defined(__CUDACC__)
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = kernels_overlap() ? 1 : 0;
  static_cast<void>(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
#else
  static_cast<void>(shared_bytes);
  static_cast<void>(stream);
  simt::launch(blocks, threads, [&] { kernel(arguments...); });
#endif
}

}  // namespace isofold::cuda
