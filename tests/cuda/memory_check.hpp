// Calls keep no device memory.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdio>

#include "cuda/device_array.hpp"

namespace isofold_test {

// Whether a thousand calls leave as much device memory as there was before. What other programs take or give
// back meanwhile counts too, so it is asked up to five times: what calls keep, they keep each time.
template <class Enqueue>
int check_calls_keep_no_memory(const char* what, cudaStream_t stream, Enqueue enqueue) {
  std::size_t kept = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    std::size_t before = 0;
    std::size_t after = 0;
    std::size_t total = 0;
    for (int call = 0; call < 1001; ++call) {
      if (!enqueue()) return 1;
      if (call > 0) continue;
      check_cuda(cudaStreamSynchronize(stream), what);
      check_cuda(cudaMemGetInfo(&before, &total), what);
    }
    check_cuda(cudaStreamSynchronize(stream), what);
    check_cuda(cudaMemGetInfo(&after, &total), what);
    if (after >= before) return 0;
    kept = before - after;
  }
  std::printf("%s: 1,000 calls keep %zu bytes of device memory\n", what, kept);
  return 1;
}

}  // namespace isofold_test
