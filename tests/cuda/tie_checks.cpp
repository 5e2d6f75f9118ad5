#include "cuda/tie_checks.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "cuda/device_array.hpp"
#include "isofold/isofold.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;
using isofold::Executor;
using isofold::IsotonicProblem;
using isofold::Rows;
using Offsets = std::vector<std::int64_t>;

struct Batch {
  Offsets rows{0};
  Offsets ties{0};
  std::int64_t length = 0;  // of every row, or 0: ragged
  bool single = false;
  bool single_weights = false;
  bool increasing = true;
  std::vector<double> values;
  std::vector<double> weights;
  std::string name;
};

// Rows of the zoo's families, cut into groups of one, of a few, or of anything up to the row.
Batch random_batch(Random& random, std::int64_t number) {
  Batch batch;
  batch.single = random.chance(0.5);
  batch.single_weights = random.chance(0.5);
  batch.increasing = random.chance(0.5);
  const bool weighted = random.chance(0.5);
  const bool rectangle = random.chance(0.3);
  const std::int64_t most = random.chance(0.6) ? 60 : (random.chance(0.6) ? 1200 : 30000);
  const std::int64_t rows = most == 60 ? (random.chance(0.5) ? 2000 : 300) : (most == 1200 ? 200 : 12);
  if (rectangle) batch.length = random.between(1, most);
  const auto& families = value_families();
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t length = rectangle ? batch.length : random.between(0, most);
    ZooRow zoo;
    zoo.values_type = batch.single ? DataType::float32 : DataType::float64;
    Doubles weights;
    if (length > 0) {
      families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))].fill(
          random, length, zoo);
      if (weighted)
        fill_weights(random, batch.single_weights ? DataType::float32 : DataType::float64, length, weights);
    }
    batch.values.insert(batch.values.end(), zoo.values.begin(), zoo.values.end());
    batch.weights.insert(batch.weights.end(), weights.begin(), weights.end());
    const std::int64_t largest =
        random.chance(0.3) ? 1 : (random.chance(0.7) ? 6 : std::max<std::int64_t>(length, 1));
    for (std::int64_t i = 0; i < length;) {
      i = std::min(length, i + random.between(1, largest));
      batch.ties.push_back(batch.rows.back() + i);
    }
    batch.rows.push_back(batch.rows.back() + length);
  }
  batch.name = "ties, batch " + std::to_string(number) + (batch.single ? ", float32" : ", float64") +
               (!weighted ? "" : (batch.single_weights ? ", float32 weights" : ", float64 weights")) +
               (batch.increasing ? ", up" : ", down") + (rectangle ? ", rectangle" : ", ragged");
  return batch;
}

template <class T>
struct Answer {
  std::vector<T> fit;
  std::vector<std::uint8_t> starts;
};

template <class V, class W>
struct Typed {
  std::vector<V> values;
  std::vector<W> weights;
};

template <class V, class W>
Typed<V, W> typed(const Batch& batch) {
  return {{batch.values.begin(), batch.values.end()}, {batch.weights.begin(), batch.weights.end()}};
}

template <class V, class W>
Answer<V> on_cpu(const Batch& batch, const Offsets& ties) {
  const Typed<V, W> arrays = typed<V, W>(batch);
  IsotonicProblem problem;
  problem.increasing = batch.increasing;
  problem.values = arrays.values.data();
  if (!arrays.weights.empty()) problem.weights = arrays.weights.data();
  problem.rows = Rows::ragged(batch.rows.data(), static_cast<std::int64_t>(batch.rows.size()) - 1);
  problem.tie_offsets = ties.data();
  problem.tie_groups = static_cast<std::int64_t>(ties.size()) - 1;
  Answer<V> answer{std::vector<V>(batch.values.size()), std::vector<std::uint8_t>(batch.values.size())};
  const isofold::Status status =
      isofold::isotonic_regression(problem, {answer.fit.data(), answer.starts.data()}, {});
  if (!status.ok()) {
    std::printf("%s: the CPU executor says %s\n", batch.name.c_str(), status.message.c_str());
    std::exit(2);
  }
  return answer;
}

// The batch on the device, ready to be enqueued.
template <class V, class W>
struct OnDevice {
  DeviceArray<V> values;
  DeviceArray<W> weights;
  DeviceArray<std::int64_t> rows;
  DeviceArray<std::int64_t> ties;
  DeviceArray<V> fit;
  DeviceArray<std::uint8_t> starts;
  IsotonicProblem problem;
  Executor executor;

  OnDevice(const Batch& batch, const Offsets& tie_offsets, std::int64_t shift)
      : values(typed<V, W>(batch).values, shift),
        weights(typed<V, W>(batch).weights, shift),
        rows(batch.rows),
        ties(tie_offsets),
        fit(values.count(), shift),
        starts(values.count(), shift) {
    const auto count = static_cast<std::int64_t>(batch.rows.size()) - 1;
    problem.increasing = batch.increasing;
    problem.values = values.data();
    if (weights.count() > 0) problem.weights = weights.data();
    problem.rows = batch.length > 0 ? Rows::rectangle(count, batch.length)
                                    : Rows::ragged_on_device(rows.data(), count, values.count());
    problem.tie_offsets = ties.data();
    problem.tie_groups = ties.count() - 1;
    executor.backend = Backend::cuda;
  }
  [[nodiscard]] bool enqueue() {
    const isofold::Status status =
        isofold::isotonic_regression(problem, {fit.data(), starts.data()}, executor);
    if (!status.ok()) std::printf("ties: %s\n", status.message.c_str());
    return status.ok();
  }
  [[nodiscard]] Answer<V> answer() const { return {fit.host(), starts.host()}; }
};

template <class V>
bool same(const Answer<V>& found, const Answer<V>& expected, const std::string& name) {
  if (std::memcmp(found.fit.data(), expected.fit.data(), found.fit.size() * sizeof(V)) == 0 &&
      found.starts == expected.starts) {
    return true;
  }
  std::size_t at = 0;
  while (std::memcmp(&found.fit[at], &expected.fit[at], sizeof(V)) == 0 &&
         found.starts[at] == expected.starts[at])
    ++at;
  std::printf("%s: differs at %zu of %zu: %.17g, starts %d, not %.17g, starts %d\n", name.c_str(), at,
              found.fit.size(), static_cast<double>(found.fit[at]), found.starts[at],
              static_cast<double>(expected.fit[at]), expected.starts[at]);
  return false;
}

// Whether the entries in [begin, end] are one run of consecutive ones that rises from begin to end.
bool cut_by_one_run(const Offsets& ties, std::int64_t begin, std::int64_t end) {
  std::int64_t last = -1;
  std::int64_t previous = -1;
  for (std::size_t g = 0; g < ties.size(); ++g) {
    if (ties[g] < begin || ties[g] > end) continue;
    if (last < 0 ? ties[g] != begin : (static_cast<std::int64_t>(g) != previous + 1 || ties[g] <= last)) {
      return false;
    }
    last = ties[g];
    previous = static_cast<std::int64_t>(g);
  }
  return last == end;
}

// What bad tie offsets give: NaN in the rows that they do not cut, and the CPU's answer in the others.
template <class V, class W>
Answer<V> with_refused_rows(const Batch& batch, const Offsets& ties, std::int64_t* refused) {
  Offsets right{0};
  std::vector<bool> served;
  *refused = 0;
  for (std::size_t r = 0; r + 1 < batch.rows.size(); ++r) {
    const std::int64_t begin = batch.rows[r];
    const std::int64_t end = batch.rows[r + 1];
    served.push_back(begin == end || cut_by_one_run(ties, begin, end));
    if (!served.back()) {
      ++*refused;
      right.push_back(end);
      continue;
    }
    for (const std::int64_t at : ties) {
      if (at > begin && at <= end) right.push_back(at);
    }
  }
  Answer<V> answer = on_cpu<V, W>(batch, right);
  for (std::size_t r = 0; r < served.size(); ++r) {
    if (served[r]) continue;
    for (std::int64_t i = batch.rows[r]; i < batch.rows[r + 1]; ++i) {
      answer.fit[static_cast<std::size_t>(i)] = std::numeric_limits<V>::quiet_NaN();
      answer.starts[static_cast<std::size_t>(i)] = i == batch.rows[r];
    }
  }
  return answer;
}

Offsets spoiled(const Batch& batch, Random& random) {
  Offsets ties = batch.ties;
  Offsets stretch;
  const auto any = [&] {
    return static_cast<std::size_t>(random.below(static_cast<std::int64_t>(ties.size())));
  };
  const std::int64_t total = batch.rows.back();
  for (std::int64_t fault = random.between(1, 2 + static_cast<std::int64_t>(ties.size()) / 50); fault > 0;
       --fault) {
    const std::size_t at = any();
    switch (random.below(7)) {
      case 0:  // anything
        ties[at] = static_cast<std::int64_t>(random.below(1LL << 62)) - (1LL << 61);
        break;
      case 1:
        ties[at] = random.between(0, total);
        break;
      case 2:
        ties[at] = ties[any()];
        break;
      case 3:
        std::swap(ties[at], ties[any()]);
        break;
      case 4:  // two groups become one, across rows or not
        if (ties.size() > 2) ties.erase(ties.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 5:
        ties[at] = ties[at] + random.between(-2, 2);
        break;
      default:  // a stretch twice
        stretch.assign(ties.begin() + static_cast<std::ptrdiff_t>(at / 2),
                       ties.begin() + static_cast<std::ptrdiff_t>(std::min(ties.size(), at / 2 + 5)));
        ties.insert(ties.begin() + static_cast<std::ptrdiff_t>(at), stretch.begin(), stretch.end());
        break;
    }
  }
  // More groups than elements are refused on the host.
  while (static_cast<std::int64_t>(ties.size()) - 1 > total) ties.pop_back();
  return ties;
}

template <class V, class W>
int check_batch(const Batch& batch, Random& random, std::int64_t* refused) {
  int failed = 0;
  {
    OnDevice<V, W> device(batch, batch.ties, random.below(5));
    if (!device.enqueue()) return 1;
    check_cuda(cudaDeviceSynchronize(), batch.name.c_str());
    if (!same(device.answer(), on_cpu<V, W>(batch, batch.ties), batch.name)) ++failed;
    if (!device.fit.margins_intact() || !device.starts.margins_intact()) ++failed;
    if (device.values.host() != typed<V, W>(batch).values ||
        device.weights.host() != typed<V, W>(batch).weights) {
      std::printf("%s: an input was written to\n", batch.name.c_str());
      ++failed;
    }
  }
  if (batch.rows.size() > 500) return failed;  // the rule below is looked up the slow way
  const Offsets ties = spoiled(batch, random);
  OnDevice<V, W> device(batch, ties, random.below(5));
  if (!device.enqueue()) return failed + 1;
  check_cuda(cudaDeviceSynchronize(), batch.name.c_str());
  std::int64_t rows = 0;
  if (!same(device.answer(), with_refused_rows<V, W>(batch, ties, &rows), batch.name + ", bad tie offsets"))
    ++failed;
  if (!device.fit.margins_intact() || !device.starts.margins_intact()) ++failed;
  *refused += rows;
  return failed;
}

// A call behind a gate returns at once; a captured one is replayed with other values and other ties.
int check_enqueueing(std::uint64_t seed) {
  Random random(seed, 1);
  Batch batch = random_batch(random, 0);
  Batch other = batch;
  for (double& value : other.values) value = -value;
  other.ties = batch.rows;
  other.ties.erase(std::unique(other.ties.begin(), other.ties.end()), other.ties.end());
  // As many entries in either: the last groups of `batch` are left out, which refuses rows of it.
  batch.ties.resize(std::min(batch.ties.size(), other.ties.size()));
  other.ties.resize(batch.ties.size());
  std::int64_t refused = 0;
  using V = double;
  const Answer<V> expected = with_refused_rows<V, V>(batch, batch.ties, &refused);
  const Answer<V> expected_other = with_refused_rows<V, V>(other, other.ties, &refused);
  int failed = 0;
  OnDevice<V, V> device(batch, batch.ties, 0);
  const OnDevice<V, V> device_other(other, other.ties, 0);
  std::int64_t bytes = 0;
  if (!isofold::isotonic_regression_scratch(device.problem, &bytes).ok()) return 1;
  const DeviceArray<unsigned char> scratch(bytes);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  device.executor.stream = stream;
  for (const bool own : {true, false}) {
    device.executor.scratch = own ? scratch.data() : nullptr;
    device.executor.scratch_bytes = own ? bytes : 0;
    if (!device.enqueue()) ++failed;
    check_cuda(cudaStreamSynchronize(stream), "ties");
    std::atomic<bool> open{false};
    check_cuda(cudaLaunchHostFunc(
                   stream,
                   [](void* gate) {
                     while (!static_cast<std::atomic<bool>*>(gate)->load()) std::this_thread::yield();
                   },
                   &open),
               "gate");
    std::future<bool> call = std::async(std::launch::async, [&] { return device.enqueue(); });
    if (call.wait_for(std::chrono::seconds(10)) != std::future_status::ready) {
      std::printf("ties: the call waits for its stream\n");
      ++failed;
    }
    open = true;
    if (!call.get()) ++failed;
    check_cuda(cudaStreamSynchronize(stream), "ties");
    if (!same(device.answer(), expected, "ties behind a gate")) ++failed;

    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capture");
    if (!device.enqueue()) ++failed;
    check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
    check_cuda(cudaGraphInstantiate(&replay, graph, 0), "graph");
    for (const bool first : {false, true, false}) {
      const auto& from = first ? batch : other;
      copy_to_device(device.values.data(), from.values.data(), device.values.bytes(), "new values");
      copy_to_device(device.ties.data(), from.ties.data(), device.ties.bytes(), "new ties");
      check_cuda(cudaGraphLaunch(replay, stream), "replay");
      check_cuda(cudaStreamSynchronize(stream), "replay");
      if (!same(device.answer(), first ? expected : expected_other, "ties, replayed graph")) ++failed;
    }
    copy_to_device(device.values.data(), batch.values.data(), device.values.bytes(), "values");
    copy_to_device(device.ties.data(), batch.ties.data(), device.ties.bytes(), "ties");
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
  return failed;
}

}  // namespace

int check_ties(const BatchRange& batches, std::uint64_t seed, bool streams) {
  int failed = 0;
  std::int64_t rows = 0;
  std::int64_t refused = 0;
  for (std::int64_t b = batches.first; b < batches.end; b += batches.step) {
    Random random(seed + 1000, static_cast<std::uint64_t>(b));
    const Batch batch = random_batch(random, b);
    rows += static_cast<std::int64_t>(batch.rows.size()) - 1;
    if (batch.values.empty()) continue;
    if (batch.single && batch.single_weights) failed += check_batch<float, float>(batch, random, &refused);
    if (batch.single && !batch.single_weights) failed += check_batch<float, double>(batch, random, &refused);
    if (!batch.single && batch.single_weights) failed += check_batch<double, float>(batch, random, &refused);
    if (!batch.single && !batch.single_weights)
      failed += check_batch<double, double>(batch, random, &refused);
  }
  if (streams) failed += check_enqueueing(seed);
  std::printf("tie groups: %lld rows; of those with bad tie offsets %lld refused\n",
              static_cast<long long>(rows), static_cast<long long>(refused));
  return failed;
}

}  // namespace isofold_test
