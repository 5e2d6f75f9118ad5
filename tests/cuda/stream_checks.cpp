#include "cuda/stream_checks.hpp"

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/memory_check.hpp"
#include "cuda/shapes.hpp"
#include "isofold/isofold.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;
using isofold::Executor;
using isofold::IsotonicProblem;
using isofold::Rows;

// A ragged batch with rows of every class: a few elements, a tile, a chunk, several chunks.
struct Batch {
  std::vector<double> values;
  std::vector<std::int64_t> offsets{0};

  explicit Batch(std::uint64_t seed) {
    std::vector<double> row;
    std::vector<double> none;
    for (int repeat = 0; repeat < 4; ++repeat) {
      for (const std::int64_t length : {3, 30, 100, 900, 5000, 40000, 300000}) {
        const char* shape = repeat % 2 == 0 ? "noise" : (length % 3 == 0 ? "tens" : "decimals");
        fill_shape(shape, length, seed + static_cast<std::uint64_t>(repeat), false, row, none);
        values.insert(values.end(), row.begin(), row.end());
        offsets.push_back(static_cast<std::int64_t>(values.size()));
      }
    }
  }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  [[nodiscard]] std::int64_t total() const { return offsets.back(); }
  [[nodiscard]] std::vector<double> fit_on_cpu() const {
    std::vector<double> fit(values.size());
    IsotonicProblem problem;
    problem.values = values.data();
    problem.rows = Rows::ragged(offsets.data(), rows());
    if (!isofold::isotonic_regression(problem, {fit.data(), nullptr}, {}).ok()) std::exit(2);
    return fit;
  }
};

// The batch on the device, with room for its fit, a stream and scratch.
struct OnDevice {
  DeviceArray<double> values;
  DeviceArray<std::int64_t> offsets;
  DeviceArray<double> fit;
  DeviceArray<unsigned char> scratch;
  IsotonicProblem problem;
  Executor executor;
  cudaStream_t stream = nullptr;

  explicit OnDevice(const Batch& batch)
      : values(batch.values), offsets(batch.offsets), fit(batch.total()), scratch(scratch_bytes(batch)) {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
    problem.values = values.data();
    problem.rows = Rows::ragged_on_device(offsets.data(), batch.rows(), batch.total());
    executor.backend = Backend::cuda;
    executor.stream = stream;
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() { cudaStreamDestroy(stream); }

  void own_scratch() {
    executor.scratch = scratch.data();
    executor.scratch_bytes = scratch.count();
  }
  [[nodiscard]] bool enqueue() const {
    const isofold::Status status = isofold::isotonic_regression(problem, {fit.data(), nullptr}, executor);
    if (!status.ok()) std::printf("streams: %s\n", status.message.c_str());
    return status.ok();
  }
  [[nodiscard]] bool finished_as(const std::vector<double>& expected, const char* what) {
    check_cuda(cudaStreamSynchronize(stream), what);
    const std::vector<double> found = fit.host();
    if (std::memcmp(found.data(), expected.data(), fit.bytes()) == 0) return true;
    std::printf("streams: %s: wrong bits\n", what);
    return false;
  }

 private:
  static std::int64_t scratch_bytes(const Batch& batch) {
    IsotonicProblem problem;
    problem.values = batch.values.data();
    problem.rows = Rows::ragged_on_device(batch.offsets.data(), batch.rows(), batch.total());
    std::int64_t bytes = 0;
    if (!isofold::isotonic_regression_scratch(problem, &bytes).ok()) std::exit(2);
    return bytes;
  }
};

// A stream that waits for the host: a call that waits for its stream never returns while the gate is shut.
int check_that_calls_return_at_once(const Batch& batch, const std::vector<double>& expected) {
  int failed = 0;
  for (const bool own : {true, false}) {
    OnDevice device(batch);
    if (own) device.own_scratch();
    if (!device.enqueue() || !device.finished_as(expected, "first call")) ++failed;  // loads the kernels
    fill_on_device(device.fit.data(), 0, device.fit.bytes(), "clear");
    std::atomic<bool> open{false};
    check_cuda(cudaLaunchHostFunc(
                   device.stream,
                   [](void* gate) {
                     while (!static_cast<std::atomic<bool>*>(gate)->load()) std::this_thread::yield();
                   },
                   &open),
               "gate");
    std::future<bool> call = std::async(std::launch::async, [&] { return device.enqueue(); });
    if (call.wait_for(std::chrono::seconds(10)) != std::future_status::ready) {
      std::printf("streams: the call waits for its stream (%s)\n",
                  own ? "own scratch" : "stream-ordered scratch");
      ++failed;
    }
    open = true;
    if (!call.get() || !device.finished_as(expected, "behind a gate")) ++failed;
  }
  return failed;
}

int check_graphs(const Batch& batch, const std::vector<double>& expected) {
  int failed = 0;
  const Batch other(77);
  const std::vector<double> expected_other = other.fit_on_cpu();
  for (const bool own : {true, false}) {
    OnDevice device(batch);
    if (own) device.own_scratch();
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check_cuda(cudaStreamBeginCapture(device.stream, cudaStreamCaptureModeThreadLocal), "capture");
    if (!device.enqueue()) ++failed;
    check_cuda(cudaStreamEndCapture(device.stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&replay, graph, 0), "graph");
    for (int repeat = 0; repeat < 4; ++repeat) {
      const bool first = repeat % 2 == 0;
      copy_to_device(device.values.data(), (first ? batch : other).values.data(), device.values.bytes(),
                     "new values");
      check_cuda(cudaGraphLaunch(replay, device.stream), "replay");
      if (!device.finished_as(first ? expected : expected_other, "replayed graph")) ++failed;
    }
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
  }
  return failed;
}

int check_memory(const Batch& batch) {
  const OnDevice device(batch);
  return check_calls_keep_no_memory("streams", device.stream, [&] { return device.enqueue(); });
}

// A hundred runs while another stream keeps the device busy, and while another thread calls too.
int check_under_load(const Batch& batch, const std::vector<double>& expected) {
  std::atomic<bool> stop{false};
  std::atomic<int> failed{0};
  std::thread load([&] {
    const Batch other(5);
    OnDevice device(other);
    const std::vector<double> expected_other = other.fit_on_cpu();
    while (!stop) {
      for (int i = 0; i < 5; ++i) {
        if (!device.enqueue()) ++failed;
      }
      if (!device.finished_as(expected_other, "the load itself")) ++failed;
    }
  });
  OnDevice device(batch);
  for (int repeat = 0; repeat < 100; ++repeat) {
    check_cuda(cudaMemsetAsync(device.fit.data(), 0, device.fit.bytes(), device.stream), "clear");
    if (!device.enqueue() || !device.finished_as(expected, "under load")) ++failed;
  }
  stop = true;
  load.join();
  return failed;
}

}  // namespace

int check_streams() {
  const Batch batch(1);
  const std::vector<double> expected = batch.fit_on_cpu();
  const int failed = check_that_calls_return_at_once(batch, expected) + check_graphs(batch, expected) +
                     check_memory(batch) + check_under_load(batch, expected);
  std::printf("streams, graphs, memory, load\n");
  return failed;
}

}  // namespace isofold_test
