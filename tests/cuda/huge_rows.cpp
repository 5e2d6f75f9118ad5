#include "cuda/huge_rows.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device_array.hpp"
#include "isofold/isofold.hpp"
#include "support/block_check.hpp"
#include "support/grid_rows.hpp"
#include "support/random.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;
using isofold::Executor;
using isofold::IsotonicProblem;
using isofold::Rows;

constexpr std::int64_t kPiece = std::int64_t{1} << 26;  // elements that travel at once

int host_threads() { return static_cast<int>(std::max(1U, std::thread::hardware_concurrency())); }

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Pinned, so that copies run at the link's rate.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::int64_t count) {
    check_cuda(cudaMallocHost(reinterpret_cast<void**>(&data_), static_cast<std::size_t>(count) * sizeof(T)),
               "pinned memory");
  }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  ~PinnedArray() { cudaFreeHost(data_); }
  [[nodiscard]] T* data() const { return data_; }

 private:
  T* data_ = nullptr;
};

void upload(const GridRows& rows, float* device) {
  const PinnedArray<float> buffer(kPiece);
  for (std::int64_t at = 0; at < rows.total(); at += kPiece) {
    const std::int64_t count = std::min(kPiece, rows.total() - at);
    const int threads = host_threads();
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) {
      workers.emplace_back([&, t] {
        const std::int64_t begin = count * t / threads;
        rows.fill(at + begin, at + count * (t + 1) / threads, buffer.data() + begin);
      });
    }
    for (std::thread& worker : workers) worker.join();
    check_cuda(cudaMemcpy(device + at, buffer.data(), static_cast<std::size_t>(count) * sizeof(float),
                          cudaMemcpyHostToDevice),
               "copy values");
  }
}

BlockReport judged(const GridRows& rows, const float* fit, const std::uint8_t* starts) {
  const PinnedArray<float> fit_buffer(kPiece);
  const PinnedArray<std::uint8_t> start_buffer(kPiece);
  BlockCheck check(rows, host_threads());
  for (std::int64_t at = 0; at < rows.total(); at += kPiece) {
    const auto count = static_cast<std::size_t>(std::min(kPiece, rows.total() - at));
    check_cuda(cudaMemcpy(fit_buffer.data(), fit + at, count * sizeof(float), cudaMemcpyDeviceToHost),
               "copy the fit");
    check_cuda(cudaMemcpy(start_buffer.data(), starts + at, count, cudaMemcpyDeviceToHost),
               "copy block starts");
    check.take(fit_buffer.data(), start_buffer.data(), static_cast<std::int64_t>(count));
  }
  return check.finish();
}

std::string gigabytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", bytes / 1e9);
  return text;
}

int check_rows(const char* name, const GridRows& rows) {
  const std::int64_t total = rows.total();
  IsotonicProblem problem;
  // Only sizes are asked for: what the pointers point to is not looked at.
  const float no_value = 0;
  const std::int64_t no_offset = 0;
  problem.values = &no_value;
  const auto shaped = [&](const std::int64_t* offsets) {
    return rows.rows() == 1 ? Rows::single(total) : Rows::ragged_on_device(offsets, rows.rows(), total);
  };
  problem.rows = shaped(&no_offset);
  std::int64_t scratch_bytes = 0;
  if (const isofold::Status status = isofold::isotonic_regression_scratch(problem, &scratch_bytes);
      !status.ok()) {
    std::printf("%s: %s\n", name, status.message.c_str());
    return 1;
  }
  const double needed = 9.0 * static_cast<double>(total) + static_cast<double>(scratch_bytes) +
                        8.0 * static_cast<double>(rows.rows() + 1);
  std::size_t available = 0;
  std::size_t all = 0;
  check_cuda(cudaMemGetInfo(&available, &all), "memory");
  if (needed + 5e8 > static_cast<double>(available)) {
    std::printf("%s: left out, needs %s of device memory and %s are free\n", name, gigabytes(needed).c_str(),
                gigabytes(static_cast<double>(available)).c_str());
    return 0;
  }

  const double begin = seconds();
  const DeviceArray<float> values(total);
  const DeviceArray<float> fit(total);
  const DeviceArray<std::uint8_t> starts(total);
  const DeviceArray<std::int64_t> offsets(rows.offsets());
  const DeviceArray<unsigned char> scratch(scratch_bytes);
  upload(rows, values.data());
  const double uploaded = seconds();
  problem.values = values.data();
  problem.rows = shaped(offsets.data());
  Executor executor;
  executor.backend = Backend::cuda;
  executor.scratch = scratch.data();
  executor.scratch_bytes = scratch_bytes;
  double fitted_ms = 0;
  for (int repeat = 0; repeat < 2; ++repeat) {  // the first call loads the kernels
    check_cuda(cudaDeviceSynchronize(), name);
    const double start = seconds();
    const isofold::Status status =
        isofold::isotonic_regression(problem, {fit.data(), starts.data()}, executor);
    if (!status.ok()) {
      std::printf("%s: %s\n", name, status.message.c_str());
      return 1;
    }
    check_cuda(cudaDeviceSynchronize(), name);
    fitted_ms = 1000 * (seconds() - start);
  }
  const double fitted = seconds();
  BlockReport report = judged(rows, fit.data(), starts.data());
  if (!fit.margins_intact() || !starts.margins_intact() || !scratch.margins_intact()) {
    ++report.faults;
    std::printf("%s: wrote outside its memory\n", name);
  }
  if (report.faults > 0) {
    std::printf("%s: %lld faults; %s\n", name, static_cast<long long>(report.faults),
                report.first_fault.c_str());
  }
  std::printf(
      "%s: %lld elements, %lld rows, %lld blocks of %lld to %lld; fit %.1f ms, %s of device memory; "
      "filled in %.1f s, checked in %.1f s\n",
      name, static_cast<long long>(total), static_cast<long long>(rows.rows()),
      static_cast<long long>(report.blocks), static_cast<long long>(report.shortest),
      static_cast<long long>(report.longest), fitted_ms, gigabytes(needed).c_str(), uploaded - begin,
      seconds() - fitted);
  return report.faults > 0 ? 1 : 0;
}

// Lengths log-uniform from 1 to a million, and now and then 20,000 rows of up to 40 elements, some empty.
std::vector<std::int64_t> mixed_offsets(std::int64_t total) {
  std::vector<std::int64_t> offsets{0};
  Random random(9, 9);
  const auto add = [&](std::int64_t length) {
    if (offsets.back() < total) offsets.push_back(std::min(total, offsets.back() + length));
  };
  while (offsets.back() < total) {
    if (random.chance(1.0 / 64)) {
      for (int i = 0; i < 20000; ++i) add(random.between(0, 40));
    } else {
      add(static_cast<std::int64_t>(std::pow(1e6, random.unit())));
    }
  }
  return offsets;
}

}  // namespace

int check_huge_rows() {
  int failures = 0;
  failures += check_rows("ragged batch past 2^31", GridRows(mixed_offsets((std::int64_t{1} << 31) + 5), 21));
  for (const auto& [name, length] : {std::pair("row of 3e9", std::int64_t{3000000000}),
                                     std::pair("row of 1e10", std::int64_t{10000000000})}) {
    failures += check_rows(name, GridRows({0, length}, 22));
  }
  return failures;
}

}  // namespace isofold_test
