// One call of segment reductions on the CPU and on the GPU.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "cuda/device_numbers.hpp"
#include "isofold/isofold.hpp"
#include "support/segment_batch.hpp"

namespace isofold_test {

[[nodiscard]] inline std::vector<isofold::SegmentValue> all_values() {
  std::vector<isofold::SegmentValue> all(3);
  for (std::size_t v = 0; v < all.size(); ++v) all[v] = static_cast<isofold::SegmentValue>(v);
  return all;
}

struct SegmentCall {
  std::string name;
  SegmentBatch batch;
  std::int64_t rows = 0;  // > 0: a rectangle of so many segments, not the batch's offsets
  std::vector<isofold::SegmentValue> values = all_values();
  DataType out = DataType::float64;
  std::int64_t shift = 0;
  std::int64_t second_shift = 0;  // of b

  [[nodiscard]] std::int64_t segments() const {
    return rows > 0 ? rows : static_cast<std::int64_t>(batch.offsets.size()) - 1;
  }
  [[nodiscard]] std::int64_t total() const { return static_cast<std::int64_t>(batch.a.size()); }
};

using SegmentBits = std::vector<std::vector<unsigned char>>;

[[nodiscard]] inline SegmentBits segments_on_cpu(const SegmentCall& call) {
  const std::vector<unsigned char> a = stored(call.batch.type, call.batch.a);
  const std::vector<unsigned char> b = stored(call.batch.type, call.batch.b);
  SegmentBits found(call.values.size());
  std::vector<isofold::SegmentReduction> reductions;
  for (std::size_t v = 0; v < found.size(); ++v) {
    found[v].resize(static_cast<std::size_t>(call.segments()) * size_of(call.out));
    isofold::SegmentReduction reduction{call.values[v], {a.data(), call.batch.type}, {}, {}};
    if (call.values[v] == isofold::SegmentValue::dot) reduction.b = {b.data(), call.batch.type};
    reduction.out = {found[v].data(), call.out};
    reductions.push_back(reduction);
  }
  const auto segments = call.rows > 0 ? isofold::Rows::rectangle(call.rows, call.total() / call.rows)
                                      : isofold::Rows::ragged(call.batch.offsets.data(), call.segments());
  const isofold::Status status =
      isofold::segment_reductions(reductions.data(), static_cast<std::int64_t>(reductions.size()), segments);
  if (!status.ok()) std::printf("%s: the CPU executor says %s\n", call.name.c_str(), status.message.c_str());
  return found;
}

// The same in device memory.
class SegmentsOnDevice {
 public:
  explicit SegmentsOnDevice(const SegmentCall& call)
      : call_(call),
        a(call.batch.type, stored(call.batch.type, call.batch.a), call.shift),
        b(call.batch.type, stored(call.batch.type, call.batch.b), call.second_shift),
        offsets(call.batch.offsets) {
    for (const isofold::SegmentValue value : call.values) {
      out.push_back(std::make_unique<DeviceNumbers>(call.out, call.segments(), call.shift));
      isofold::SegmentReduction reduction{value, a.input(), {}, out.back()->output()};
      if (value == isofold::SegmentValue::dot) reduction.b = b.input();
      reductions.push_back(reduction);
    }
    segments = call.rows > 0 ? isofold::Rows::rectangle(call.rows, call.total() / call.rows)
                             : isofold::Rows::ragged_on_device(offsets.data(), call.segments(), call.total());
    executor.backend = isofold::Backend::cuda;
  }

  [[nodiscard]] bool enqueue() const {
    const isofold::Status status = isofold::segment_reductions(
        reductions.data(), static_cast<std::int64_t>(reductions.size()), segments, executor);
    if (!status.ok()) {
      std::printf("%s: the CUDA executor says %s\n", call_.name.c_str(), status.message.c_str());
    }
    return status.ok();
  }

  // Prints what differs, and says whether nothing does.
  [[nodiscard]] bool agrees(const SegmentBits& expected) const {
    bool same = a.margins_intact() && b.margins_intact() && offsets.margins_intact() &&
                a.host() == stored(call_.batch.type, call_.batch.a) &&
                b.host() == stored(call_.batch.type, call_.batch.b);
    for (const auto& array : out) same = same && array->margins_intact();
    if (!same) std::printf("%s: wrote outside its outputs\n", call_.name.c_str());
    for (std::size_t v = 0; v < out.size(); ++v) {
      const std::vector<unsigned char> found = out[v]->host();
      if (found == expected[v]) continue;
      std::int64_t wrong = 0;
      std::int64_t first = -1;
      for (std::int64_t s = 0; s < call_.segments(); ++s) {
        if (load_bits(found.data(), call_.out, s) == load_bits(expected[v].data(), call_.out, s)) continue;
        if (wrong++ == 0) first = s;
      }
      std::printf("%s, reduction %zu: %lld of %lld differ, first at %lld: %s, not %s\n", call_.name.c_str(),
                  v, static_cast<long long>(wrong), static_cast<long long>(call_.segments()),
                  static_cast<long long>(first),
                  hex(decode(call_.out, load_bits(found.data(), call_.out, first))).c_str(),
                  hex(decode(call_.out, load_bits(expected[v].data(), call_.out, first))).c_str());
      same = false;
    }
    return same;
  }

 private:
  const SegmentCall& call_;

 public:
  DeviceNumbers a;
  DeviceNumbers b;
  DeviceArray<std::int64_t> offsets;
  std::vector<std::unique_ptr<DeviceNumbers>> out;
  std::vector<isofold::SegmentReduction> reductions;
  isofold::Rows segments;
  isofold::Executor executor;
};

// Both, compared: 0 or 1.
[[nodiscard]] inline int segments_differ(const SegmentCall& call) {
  const SegmentsOnDevice device(call);
  if (!device.enqueue()) return 1;
  check_cuda(cudaDeviceSynchronize(), call.name.c_str());
  return device.agrees(segments_on_cpu(call)) ? 0 : 1;
}

}  // namespace isofold_test
