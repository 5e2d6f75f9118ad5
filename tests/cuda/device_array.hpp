// Device memory for tests: an array at any offset inside a poisoned block, and its way back.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

namespace isofold_test {

inline void check_cuda(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
  std::exit(2);
}

// Copies and fills that are over on return: those of pageable memory need not be, and streams that do not
// block would start their kernels meanwhile.
inline void copy_to_device(void* to, const void* from, std::size_t bytes, const char* what) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), what);
  check_cuda(cudaDeviceSynchronize(), what);
}
inline void fill_on_device(void* to, int byte, std::size_t bytes, const char* what) {
  check_cuda(cudaMemset(to, byte, bytes), what);
  check_cuda(cudaDeviceSynchronize(), what);
}

// `count` elements at an address that is `shift` elements past an aligned one, between margins of alternating
// 1e30 and NaN (0xff bytes for other types).
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values, std::int64_t shift = 0)
      : count_(static_cast<std::int64_t>(values.size())), shift_(shift) {
    allocate();
    if (count_ > 0) copy_to_device(data(), values.data(), bytes(), "copy to the device");
  }
  explicit DeviceArray(std::int64_t count, std::int64_t shift = 0) : count_(count), shift_(shift) {
    allocate();
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(memory_); }

  [[nodiscard]] T* data() const { return memory_ + kMargin + shift_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return static_cast<std::size_t>(count_) * sizeof(T); }
  [[nodiscard]] std::vector<T> host() const {
    std::vector<T> result(static_cast<std::size_t>(count_));
    if (count_ > 0) {
      check_cuda(cudaMemcpy(result.data(), data(), bytes(), cudaMemcpyDeviceToHost), "copy from the device");
    }
    return result;
  }
  // Whether the margins still hold what was put there.
  [[nodiscard]] bool margins_intact() const {
    const std::vector<T> expected = margin();
    std::vector<T> found(kMargin);
    for (const T* from : {memory_ + shift_, data() + count_}) {
      check_cuda(cudaMemcpy(found.data(), from, kMargin * sizeof(T), cudaMemcpyDeviceToHost),
                 "copy a margin");
      if (std::memcmp(found.data(), expected.data(), kMargin * sizeof(T)) != 0) return false;
    }
    return true;
  }

 private:
  static constexpr std::int64_t kMargin = 1024;

  static std::vector<T> margin() {
    std::vector<T> result(kMargin);
    std::memset(static_cast<void*>(result.data()), 0xff, kMargin * sizeof(T));
    if constexpr (std::is_floating_point_v<T>) {
      for (std::size_t i = 0; i < result.size(); i += 2) result[i] = static_cast<T>(1e30);
    }
    return result;
  }
  void allocate() {
    const auto total = static_cast<std::size_t>(count_ + shift_ + 2 * kMargin) * sizeof(T);
    check_cuda(cudaMalloc(reinterpret_cast<void**>(&memory_), total), "device memory");
    const std::vector<T> poison = margin();
    copy_to_device(memory_ + shift_, poison.data(), kMargin * sizeof(T), "poison");
    copy_to_device(data() + count_, poison.data(), kMargin * sizeof(T), "poison");
    fill_on_device(data(), 0xa5, bytes(), "poison");
  }

  T* memory_ = nullptr;
  std::int64_t count_;
  std::int64_t shift_;
};

}  // namespace isofold_test
