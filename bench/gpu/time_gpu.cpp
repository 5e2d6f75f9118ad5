// Times the CUDA executor beside a device copy of its input, in one run: medians and quartiles of event
// times, outputs and scratch allocated before. Prints a table and, with --json FILE, writes the figures.
//
//   time_gpu [--json FILE] [--only SHAPE] [--fits 0] [--gradients 0] [--repeats N] [--largest N]
//            [--commit ID]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/shapes.hpp"
#include "isofold/isofold.hpp"

namespace {

using namespace isofold_test;
using isofold::Backend;
using isofold::Executor;
using isofold::IsotonicProblem;
using isofold::Rows;

struct Quartiles {
  double low;
  double median;
  double high;
};

template <class Run>
Quartiles timed(int repeats, cudaStream_t stream, Run run) {
  cudaEvent_t start;
  cudaEvent_t stop;
  check_cuda(cudaEventCreate(&start), "event");
  check_cuda(cudaEventCreate(&stop), "event");
  std::vector<double> times;
  for (int i = -3; i < repeats; ++i) {
    check_cuda(cudaEventRecord(start, stream), "event");
    run();
    check_cuda(cudaEventRecord(stop, stream), "event");
    check_cuda(cudaEventSynchronize(stop), "run");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "event");
    if (i >= 0) times.push_back(ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 4], times[n / 2], times[3 * n / 4]};
}

struct Work {
  std::string shape;
  std::int64_t rows;
  std::int64_t length;
  bool single;
  bool weighted;
};

struct Options {
  std::string json;
  std::string only;
  std::string commit = "unknown";
  int repeats = 20;
  std::int64_t largest = 100000000;
  bool fits = true;
  bool gradients = true;
};

// The values of all rows, and their weights where there are some.
template <class V>
void fill_rows(const Work& work, std::vector<V>& typed, std::vector<V>& typed_weights) {
  const std::int64_t total = work.rows * work.length;
  std::vector<double> values;
  std::vector<double> weights;
  typed.reserve(static_cast<std::size_t>(total));
  // A few different rows, repeated: generating 1e8 normals a cell would take longer than measuring.
  const std::int64_t distinct =
      std::min<std::int64_t>(work.rows, std::max<std::int64_t>(1, 4000000 / work.length));
  for (std::int64_t r = 0; r < distinct; ++r) {
    fill_shape(work.shape, work.length, static_cast<std::uint64_t>(r + 1), work.single, values, weights);
    typed.insert(typed.end(), values.begin(), values.end());
    typed_weights.insert(typed_weights.end(), weights.begin(), weights.end());
  }
  for (std::int64_t r = distinct; r < work.rows; ++r) {
    const auto from = static_cast<std::ptrdiff_t>((r % distinct) * work.length);
    typed.insert(typed.end(), typed.begin() + from, typed.begin() + from + work.length);
    if (!weights.empty()) {
      typed_weights.insert(typed_weights.end(), typed_weights.begin() + from,
                           typed_weights.begin() + from + work.length);
    }
  }
  if (work.weighted && weights.empty()) {
    for (std::int64_t i = 0; i < total; ++i) typed_weights.push_back(static_cast<V>(1 + i % 9));
  }
}

template <class V>
void run(const Work& work, const Options& options, std::string& lines) {
  const std::int64_t total = work.rows * work.length;
  if (total > options.largest) return;
  std::vector<V> typed;
  std::vector<V> typed_weights;
  fill_rows(work, typed, typed_weights);
  const DeviceArray<V> y(typed);
  const DeviceArray<V> w(typed_weights);
  const DeviceArray<V> fit(total);
  const DeviceArray<std::uint8_t> starts(total);
  IsotonicProblem problem;
  problem.values = y.data();
  if (!typed_weights.empty()) problem.weights = w.data();
  problem.rows = Rows::rectangle(work.rows, work.length);
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream;
  std::int64_t bytes = 0;
  if (!isofold::isotonic_regression_scratch(problem, &bytes).ok()) std::exit(2);
  const DeviceArray<unsigned char> scratch(bytes);
  executor.scratch = scratch.data();
  executor.scratch_bytes = bytes;
  const Quartiles fitted = timed(options.repeats, stream, [&] {
    const isofold::Status status = isofold::isotonic_regression(problem, {fit.data(), nullptr}, executor);
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.message.c_str());
    std::exit(2);
  });
  // A copy of what is read and written: values, and weights where there are some.
  const Quartiles copy = timed(options.repeats, stream, [&] {
    check_cuda(cudaMemcpyAsync(fit.data(), y.data(), y.bytes(), cudaMemcpyDeviceToDevice, stream), "copy");
    if (!typed_weights.empty()) {
      check_cuda(cudaMemcpyAsync(fit.data(), w.data(), w.bytes(), cudaMemcpyDeviceToDevice, stream), "copy");
    }
  });
  cudaStreamDestroy(stream);
  std::printf("%-16s %9lld x %-10lld %s%s  %8.3f ms (%.3f-%.3f)  copy %7.3f  ratio %6.2f  scratch %.2fx\n",
              work.shape.c_str(), static_cast<long long>(work.rows), static_cast<long long>(work.length),
              work.single ? "f32" : "f64", typed_weights.empty() ? "  " : " w", fitted.median, fitted.low,
              fitted.high, copy.median, fitted.median / copy.median,
              static_cast<double>(bytes) / static_cast<double>(typed.size() * sizeof(V)));
  char line[512];
  std::snprintf(
      line, sizeof line,
      "    {\"shape\": \"%s\", \"rows\": %lld, \"length\": %lld, \"dtype\": \"%s\", \"weighted\": %s, "
      "\"ms\": [%.5f, %.5f, %.5f], \"copy_ms\": [%.5f, %.5f, %.5f], \"scratch_bytes\": %lld}",
      work.shape.c_str(), static_cast<long long>(work.rows), static_cast<long long>(work.length),
      work.single ? "float32" : "float64", typed_weights.empty() ? "false" : "true", fitted.low,
      fitted.median, fitted.high, copy.low, copy.median, copy.high, static_cast<long long>(bytes));
  lines += (lines.empty() ? "" : ",\n") + std::string(line);
}

// The gradient of a fit: in the values alone, and in the weights too. Beside it the fit itself, with blocks.
template <class V>
void run_gradient(const Work& work, const Options& options, std::string& lines) {
  const std::int64_t total = work.rows * work.length;
  if (total > options.largest) return;
  std::vector<V> typed;
  std::vector<V> typed_weights;
  fill_rows(work, typed, typed_weights);
  const DeviceArray<V> y(typed);
  const DeviceArray<V> w(typed_weights);
  std::reverse(typed.begin(), typed.end());
  for (std::size_t i = 0; i < typed.size(); ++i) typed[i] *= static_cast<V>(1 + i % 3);
  const DeviceArray<V> gradient(typed);
  const DeviceArray<V> in_values(total);
  const DeviceArray<V> in_weights(total);
  const DeviceArray<std::uint8_t> starts(total);
  IsotonicProblem problem;
  problem.values = y.data();
  if (!typed_weights.empty()) problem.weights = w.data();
  problem.rows = Rows::rectangle(work.rows, work.length);
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream;
  std::int64_t fit_bytes = 0;
  std::int64_t bytes = 0;
  if (!isofold::isotonic_regression_scratch(problem, &fit_bytes).ok() ||
      !isofold::isotonic_gradient_scratch(problem, &bytes).ok()) {
    std::exit(2);
  }
  const DeviceArray<unsigned char> scratch(std::max(fit_bytes, bytes));
  executor.scratch = scratch.data();
  executor.scratch_bytes = scratch.count();
  const auto checked = [](const isofold::Status& status) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s\n", status.message.c_str());
    std::exit(2);
  };
  const Quartiles fitted = timed(options.repeats, stream, [&] {
    checked(isofold::isotonic_regression(problem, {in_values.data(), starts.data()}, executor));
  });
  for (const bool both : {false, true}) {
    isofold::IsotonicGradient out;
    out.values = in_values.data();
    if (both) out.weights = in_weights.data();
    const Quartiles time = timed(options.repeats, stream, [&] {
      checked(isofold::isotonic_gradient(problem, starts.data(), gradient.data(), out, executor));
    });
    const char* name = both ? "gradient in values and weights" : "gradient in values";
    std::printf("%-16s %9lld x %-10lld %s%s  %8.3f ms (%.3f-%.3f)  fit %7.3f  ratio %6.2f  %s\n",
                work.shape.c_str(), static_cast<long long>(work.rows), static_cast<long long>(work.length),
                work.single ? "f32" : "f64", typed_weights.empty() ? "  " : " w", time.median, time.low,
                time.high, fitted.median, time.median / fitted.median, name);
    char line[512];
    std::snprintf(
        line, sizeof line,
        "    {\"call\": \"%s\", \"shape\": \"%s\", \"rows\": %lld, \"length\": %lld, \"dtype\": \"%s\", "
        "\"weighted\": %s, \"ms\": [%.5f, %.5f, %.5f], \"fit_ms\": [%.5f, %.5f, %.5f], "
        "\"scratch_bytes\": %lld}",
        name, work.shape.c_str(), static_cast<long long>(work.rows), static_cast<long long>(work.length),
        work.single ? "float32" : "float64", typed_weights.empty() ? "false" : "true", time.low, time.median,
        time.high, fitted.low, fitted.median, fitted.high, static_cast<long long>(bytes));
    lines += (lines.empty() ? "" : ",\n") + std::string(line);
  }
  cudaStreamDestroy(stream);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--json") options.json = argv[i + 1];
    if (option == "--only") options.only = argv[i + 1];
    if (option == "--commit") options.commit = argv[i + 1];
    if (option == "--repeats") options.repeats = std::atoi(argv[i + 1]);
    if (option == "--fits") options.fits = std::string(argv[i + 1]) == "1";
    if (option == "--gradients") options.gradients = std::string(argv[i + 1]) == "1";
    if (option == "--largest") options.largest = std::atoll(argv[i + 1]);
  }
  std::vector<Work> all;
  for (const char* shape : {"noise", "labels", "decreasing", "constant", "increasing", "tens", "half",
                            "sawtooth5003", "sawtooth1e5", "cliff", "mirrored_cliff"}) {
    all.push_back({shape, 1, 100000000, true, false});
  }
  for (const std::int64_t length : {10000000LL, 1000000LL, 100000LL})
    all.push_back({"noise", 1, length, true, false});
  all.push_back({"increasing", 1, 10000000, true, false});
  for (const char* shape : {"noise", "increasing"}) {
    for (const auto& [rows, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {100, 100000}, {1000, 10000}, {10000, 1000}, {100000, 100}, {1000000, 16}}) {
      all.push_back({shape, rows, length, true, false});
    }
    all.push_back({shape, 1, 100000000, false, false});
  }
  all.push_back({"noise", 1, 100000000, true, true});
  for (const char* shape : {"ninths", "decimals"}) all.push_back({shape, 1, 10000000, false, false});
  all.push_back({"noise", 1, 10000000, false, false});
  all.push_back({"noise", 1, 10000000, false, true});
  all.push_back({"rates", 1, 10000000, false, true});

  std::vector<Work> gradients;
  for (const char* shape : {"noise", "increasing"}) {
    gradients.push_back({shape, 1, 100000000, true, false});
    gradients.push_back({shape, 1000000, 16, true, false});
  }
  gradients.push_back({"tens", 1, 100000000, true, false});
  gradients.push_back({"noise", 1, 100000000, true, true});
  gradients.push_back({"noise", 1, 10000000, false, false});

  cudaDeviceProp device;
  check_cuda(cudaGetDeviceProperties(&device, 0), "device");
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "driver");
  std::string lines;
  for (const Work& work : all) {
    if (!options.fits) break;
    if (!options.only.empty() && work.shape != options.only) continue;
    if (work.single) {
      run<float>(work, options, lines);
    } else {
      run<double>(work, options, lines);
    }
  }
  for (const Work& work : gradients) {
    if (!options.gradients) break;
    if (!options.only.empty() && work.shape != options.only) continue;
    if (work.single) {
      run_gradient<float>(work, options, lines);
    } else {
      run_gradient<double>(work, options, lines);
    }
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    file << "{\n  \"device\": \"" << device.name << "\",\n  \"driver\": " << driver << ",\n  \"commit\": \""
         << options.commit << "\",\n  \"repeats\": " << options.repeats << ",\n  \"cells\": [\n"
         << lines << "\n  ]\n}\n";
  }
  return 0;
}
