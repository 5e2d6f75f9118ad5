// One gradient call of any types, on the CPU and on the GPU.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "isofold/isofold.hpp"

namespace isofold_test {

using isofold::DataType;

// Doubles held in memory of the host as float32 or float64.
struct HostFloats {
  DataType type;
  std::int64_t count;
  std::vector<unsigned char> bytes;

  HostFloats(DataType data_type, std::int64_t size)
      : type(data_type), count(size), bytes(static_cast<std::size_t>(size) * width()) {}
  HostFloats(DataType data_type, const std::vector<double>& values)
      : HostFloats(data_type, static_cast<std::int64_t>(values.size())) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto narrow = static_cast<float>(values[i]);
      std::memcpy(bytes.data() + i * width(),
                  width() == 4 ? static_cast<const void*>(&narrow) : static_cast<const void*>(&values[i]),
                  width());
    }
  }
  [[nodiscard]] std::size_t width() const { return type == DataType::float32 ? 4 : 8; }
  [[nodiscard]] double operator[](std::int64_t i) const {
    float narrow;
    double wide;
    std::memcpy(&narrow, bytes.data() + static_cast<std::size_t>(i) * width(), 4);
    if (width() == 4) return static_cast<double>(narrow);
    std::memcpy(&wide, bytes.data() + static_cast<std::size_t>(i) * width(), 8);
    return wide;
  }
  [[nodiscard]] isofold::ConstArray view() const {
    return count == 0 ? isofold::ConstArray{} : isofold::ConstArray{bytes.data(), type};
  }
  [[nodiscard]] isofold::MutableArray output() {
    return count == 0 ? isofold::MutableArray{} : isofold::MutableArray{bytes.data(), type};
  }
};

// The same in memory of the device, between poisoned margins.
class DeviceFloats {
 public:
  DeviceFloats(DataType type, std::int64_t count, std::int64_t shift) : type_(type) {
    if (type == DataType::float32) single_ = std::make_unique<DeviceArray<float>>(count, shift);
    if (type == DataType::float64) double_ = std::make_unique<DeviceArray<double>>(count, shift);
  }
  DeviceFloats(const HostFloats& from, std::int64_t shift) : DeviceFloats(from.type, from.count, shift) {
    set(from);
  }
  void set(const HostFloats& from) {
    if (from.count == 0) return;
    copy_to_device(data(), from.bytes.data(), from.bytes.size(), "copy to the device");
  }
  [[nodiscard]] void* data() const {
    return single_ ? static_cast<void*>(single_->data()) : static_cast<void*>(double_->data());
  }
  [[nodiscard]] isofold::ConstArray view() const { return {data(), type_}; }
  [[nodiscard]] isofold::MutableArray output() const { return {data(), type_}; }
  void clear() const { fill_on_device(data(), 0x5a, single_ ? single_->bytes() : double_->bytes(), "clear"); }
  [[nodiscard]] HostFloats host() const {
    HostFloats result(type_, single_ ? single_->count() : double_->count());
    if (result.count == 0) return result;
    check_cuda(cudaMemcpy(result.bytes.data(), data(), result.bytes.size(), cudaMemcpyDeviceToHost),
               "copy from the device");
    return result;
  }
  [[nodiscard]] bool margins_intact() const {
    return single_ ? single_->margins_intact() : double_->margins_intact();
  }

 private:
  DataType type_;
  std::unique_ptr<DeviceArray<float>> single_;
  std::unique_ptr<DeviceArray<double>> double_;
};

// A problem and an incoming gradient; empty weights: none. Offsets empty: `rows` rows of equal length.
struct GradientCase {
  std::string name;
  HostFloats values{DataType::float64, 0};
  HostFloats weights{DataType::float64, 0};
  HostFloats gradient{DataType::float64, 0};
  std::vector<std::int64_t> offsets;
  std::int64_t rows = 1;
  bool increasing = true;
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  DataType out_values = DataType::float64;  // none: not wanted
  DataType out_weights = DataType::float64;
  std::int64_t shift = 0;

  [[nodiscard]] isofold::IsotonicProblem problem() const {
    isofold::IsotonicProblem problem;
    problem.values = values.view();
    problem.weights = weights.view();
    problem.increasing = increasing;
    problem.lower_bound = lower;
    problem.upper_bound = upper;
    problem.rows = offsets.empty()
                       ? isofold::Rows::rectangle(rows, values.count / rows)
                       : isofold::Rows::ragged(offsets.data(), static_cast<std::int64_t>(offsets.size()) - 1);
    return problem;
  }
};

struct GradientFloats {
  HostFloats values;
  HostFloats weights;
};

// The blocks of the CPU's fit, and the CPU's gradient.
[[nodiscard]] inline std::vector<std::uint8_t> blocks_on_cpu(const GradientCase& row) {
  std::vector<std::uint8_t> starts(static_cast<std::size_t>(row.values.count));
  const isofold::Status status = isofold::isotonic_regression(row.problem(), {{}, starts.data()}, {});
  if (!status.ok()) std::printf("%s: the CPU executor says %s\n", row.name.c_str(), status.message.c_str());
  return starts;
}

[[nodiscard]] inline GradientFloats gradient_on_cpu(const GradientCase& row,
                                                    const std::vector<std::uint8_t>& starts) {
  const auto size = [&](DataType type) { return type == DataType::none ? 0 : row.values.count; };
  GradientFloats answer{{row.out_values, size(row.out_values)}, {row.out_weights, size(row.out_weights)}};
  const isofold::Status status = isofold::isotonic_gradient(
      row.problem(), starts.data(), row.gradient.view(), {answer.values.output(), answer.weights.output()});
  if (!status.ok()) std::printf("%s: the CPU executor says %s\n", row.name.c_str(), status.message.c_str());
  return answer;
}

// A case in device memory.
struct GradientOnDevice {
  DeviceFloats values;
  DeviceFloats weights;
  DeviceFloats gradient;
  DeviceFloats out_values;
  DeviceFloats out_weights;
  DeviceArray<std::uint8_t> starts;
  DeviceArray<std::int64_t> offsets;
  isofold::IsotonicProblem problem;
  isofold::IsotonicGradient out;
  isofold::Executor executor;

  GradientOnDevice(const GradientCase& row, const std::vector<std::uint8_t>& block_starts)
      : values(row.values, row.shift),
        weights(row.weights, row.shift),
        gradient(row.gradient, row.shift),
        out_values(held(row.out_values), row.values.count, row.shift),
        out_weights(held(row.out_weights), row.values.count, row.shift),
        starts(block_starts, row.shift),
        offsets(row.offsets),
        problem(row.problem()) {
    problem.values = values.view();
    if (row.weights.count > 0) problem.weights = weights.view();
    if (!row.offsets.empty()) {
      problem.rows = isofold::Rows::ragged_on_device(
          offsets.data(), static_cast<std::int64_t>(row.offsets.size()) - 1, row.values.count);
    }
    if (row.out_values != DataType::none) out.values = out_values.output();
    if (row.out_weights != DataType::none) out.weights = out_weights.output();
    executor.backend = isofold::Backend::cuda;
  }

  [[nodiscard]] bool enqueue() const {
    const isofold::Status status =
        isofold::isotonic_gradient(problem, starts.data(), gradient.view(), out, executor);
    if (!status.ok()) std::printf("gradient: %s\n", status.message.c_str());
    return status.ok();
  }

 private:
  static DataType held(DataType type) { return type == DataType::none ? DataType::float32 : type; }
};

}  // namespace isofold_test
