// How kernels are started: on a device, or thread by thread on the host (tests/emulator).
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace isofold::cuda {

template <class... Parameters, class... Arguments>
void start_kernel(void (*kernel)(Parameters...), unsigned blocks, unsigned threads, std::size_t shared_bytes,
                  cudaStream_t stream, const Arguments&... arguments) {
#if defined(__CUDACC__)
  kernel<<<blocks, threads, shared_bytes, stream>>>(arguments...);
#else
  static_cast<void>(shared_bytes);
  static_cast<void>(stream);
  simt::launch(blocks, threads, [&] { kernel(arguments...); });
#endif
}

}  // namespace isofold::cuda
