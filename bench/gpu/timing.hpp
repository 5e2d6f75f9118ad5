// What the GPU timers share: medians and quartiles of event times, and the record that they write.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <string>
#include <type_traits>
#include <vector>

#include "cuda/device_array.hpp"

namespace isofold_bench {

struct Quartiles {
  double low;
  double median;
  double high;
};

// Milliseconds of run(), or of run(i) with i counting the calls from 0; the first three are not counted.
template <class Run>
Quartiles timed(int repeats, cudaStream_t stream, Run run) {
  using isofold_test::check_cuda;
  cudaEvent_t start;
  cudaEvent_t stop;
  check_cuda(cudaEventCreate(&start), "event");
  check_cuda(cudaEventCreate(&stop), "event");
  std::vector<double> times;
  for (int i = -3; i < repeats; ++i) {
    check_cuda(cudaEventRecord(start, stream), "event");
    if constexpr (std::is_invocable_v<Run, int>) {
      run(i + 3);
    } else {
      run();
    }
    check_cuda(cudaEventRecord(stop, stream), "event");
    check_cuda(cudaEventSynchronize(stop), "run");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "event");
    if (i >= 0) times.push_back(static_cast<double>(ms));
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 4], times[n / 2], times[3 * n / 4]};
}

// Cells, one a line, with what they were measured on; nothing where `path` is empty.
inline void write_record(const std::string& path, const std::string& commit, int repeats,
                         const std::string& lines) {
  if (path.empty()) return;
  cudaDeviceProp device;
  isofold_test::check_cuda(cudaGetDeviceProperties(&device, 0), "device");
  int driver = 0;
  isofold_test::check_cuda(cudaDriverGetVersion(&driver), "driver");
  std::ofstream file(path);
  file << "{\n  \"device\": \"" << device.name << "\",\n  \"driver\": " << driver << ",\n  \"commit\": \""
       << commit << "\",\n  \"repeats\": " << repeats << ",\n  \"cells\": [\n"
       << lines << "\n  ]\n}\n";
}

}  // namespace isofold_bench
