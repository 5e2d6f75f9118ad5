#include "cuda/gradient_streams.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>
#include <vector>

#include "cuda/gradient_call.hpp"
#include "cuda/memory_check.hpp"
#include "cuda/shapes.hpp"

namespace isofold_test {
namespace {

// Rows of a few elements, of a chunk and of several, whose blocks are short and long.
GradientCase streamed_case(std::uint64_t seed) {
  GradientCase batch;
  batch.name = "gradient on a stream";
  batch.offsets = {0};
  std::vector<double> values;
  std::vector<double> gradient;
  std::vector<double> row;
  std::vector<double> none;
  for (const std::int64_t length : {3, 30, 900, 5000, 40000, 300000, 600000}) {
    fill_shape(length % 3 == 0 ? "noise" : "decimals", length, seed, false, row, none);
    values.insert(values.end(), row.begin(), row.end());
    fill_shape("noise", length, seed + 1, false, row, none);
    gradient.insert(gradient.end(), row.begin(), row.end());
    batch.offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  batch.values = {DataType::float64, values};
  for (double& value : values) value = 1.5 + 0.5 * std::sin(value);
  batch.weights = {DataType::float64, values};
  batch.gradient = {DataType::float64, gradient};
  return batch;
}

struct Streamed {
  GradientOnDevice device;
  DeviceArray<unsigned char> scratch;
  cudaStream_t stream = nullptr;

  Streamed(const GradientCase& row, const std::vector<std::uint8_t>& starts, bool own_scratch)
      : device(row, starts), scratch(bytes(device)) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    device.executor.stream = stream;
    if (!own_scratch) return;
    device.executor.scratch = scratch.data();
    device.executor.scratch_bytes = scratch.count();
  }
  Streamed(const Streamed&) = delete;
  Streamed& operator=(const Streamed&) = delete;
  ~Streamed() { cudaStreamDestroy(stream); }

  [[nodiscard]] bool finished_as(const GradientFloats& expected, const char* what) const {
    check_cuda(cudaStreamSynchronize(stream), what);
    if (device.out_values.host().bytes == expected.values.bytes &&
        device.out_weights.host().bytes == expected.weights.bytes && scratch.margins_intact()) {
      return true;
    }
    std::printf("gradient on a stream: %s: wrong bits\n", what);
    return false;
  }

 private:
  static std::int64_t bytes(const GradientOnDevice& device) {
    std::int64_t result = 0;
    if (!isofold::isotonic_gradient_scratch(device.problem, &result).ok()) std::exit(2);
    return result;
  }
};

}  // namespace

int check_gradient_streams() {
  int failed = 0;
  const GradientCase row = streamed_case(1);
  const std::vector<std::uint8_t> starts = blocks_on_cpu(row);
  const GradientFloats expected = gradient_on_cpu(row, starts);
  GradientCase other = streamed_case(1);
  other.gradient = streamed_case(9).gradient;
  const GradientFloats expected_other = gradient_on_cpu(other, starts);

  for (const bool own : {true, false}) {
    const Streamed call(row, starts, own);
    if (!call.device.enqueue() || !call.finished_as(expected, "first call")) ++failed;  // loads the kernels

    // A stream that waits for the host: a call that waits for its stream never returns while it is shut.
    call.device.out_values.clear();
    std::atomic<bool> open{false};
    check_cuda(cudaLaunchHostFunc(
                   call.stream,
                   [](void* gate) {
                     while (!static_cast<std::atomic<bool>*>(gate)->load()) std::this_thread::yield();
                   },
                   &open),
               "gate");
    std::future<bool> returned = std::async(std::launch::async, [&] { return call.device.enqueue(); });
    if (returned.wait_for(std::chrono::seconds(10)) != std::future_status::ready) {
      std::printf("gradient on a stream: the call waits for its stream\n");
      ++failed;
    }
    open = true;
    if (!returned.get() || !call.finished_as(expected, "behind a gate")) ++failed;

    // A captured call, replayed over other gradients.
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check_cuda(cudaStreamBeginCapture(call.stream, cudaStreamCaptureModeThreadLocal), "capture");
    if (!call.device.enqueue()) ++failed;
    check_cuda(cudaStreamEndCapture(call.stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&replay, graph, 0), "graph");
    for (int repeat = 0; repeat < 4; ++repeat) {
      const bool first = repeat % 2 == 0;
      copy_to_device(call.device.gradient.data(), (first ? row : other).gradient.bytes.data(),
                     row.gradient.bytes.size(), "new gradient");
      check_cuda(cudaGraphLaunch(replay, call.stream), "replay");
      if (!call.finished_as(first ? expected : expected_other, "replayed graph")) ++failed;
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
  }

  const Streamed call(row, starts, false);
  failed +=
      check_calls_keep_no_memory("gradient on a stream", call.stream, [&] { return call.device.enqueue(); });
  if (!call.finished_as(expected, "a thousand calls")) ++failed;
  std::printf("gradients on streams, graphs, memory\n");
  return failed;
}

}  // namespace isofold_test
