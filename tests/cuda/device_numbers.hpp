// Numbers of any element type in device memory, between poisoned margins.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device_array.hpp"
#include "isofold/arrays.hpp"
#include "support/float_formats.hpp"

namespace isofold_test {

class DeviceNumbers {
 public:
  DeviceNumbers(DataType type, std::int64_t count, std::int64_t shift) : type_(type), count_(count) {
    if (type == DataType::float32) single_ = std::make_unique<DeviceArray<float>>(count, shift);
    if (type == DataType::float64) double_ = std::make_unique<DeviceArray<double>>(count, shift);
    if (size_of(type) == 2) half_ = std::make_unique<DeviceArray<std::uint16_t>>(count, shift);
  }
  DeviceNumbers(DataType type, const std::vector<unsigned char>& bytes, std::int64_t shift)
      : DeviceNumbers(type, static_cast<std::int64_t>(bytes.size() / size_of(type)), shift) {
    if (count_ == 0) return;
    copy_to_device(data(), bytes.data(), bytes.size(), "copy to the device");
  }
  [[nodiscard]] void* data() const {
    if (single_) return single_->data();
    return half_ ? static_cast<void*>(half_->data()) : static_cast<void*>(double_->data());
  }
  [[nodiscard]] isofold::ConstArray input() const { return {data(), type_}; }
  [[nodiscard]] isofold::MutableArray output() const { return {data(), type_}; }
  [[nodiscard]] std::vector<unsigned char> host() const {
    std::vector<unsigned char> bytes(static_cast<std::size_t>(count_) * size_of(type_));
    if (count_ == 0) return bytes;
    check_cuda(cudaMemcpy(bytes.data(), data(), bytes.size(), cudaMemcpyDeviceToHost),
               "copy from the device");
    return bytes;
  }
  [[nodiscard]] bool margins_intact() const {
    if (single_) return single_->margins_intact();
    return half_ ? half_->margins_intact() : double_->margins_intact();
  }

 private:
  DataType type_;
  std::int64_t count_;
  std::unique_ptr<DeviceArray<std::uint16_t>> half_;
  std::unique_ptr<DeviceArray<float>> single_;
  std::unique_ptr<DeviceArray<double>> double_;
};

}  // namespace isofold_test
