// Times the CUDA executor beside a device copy of its input, in one run: medians and quartiles of event
// times, outputs and scratch allocated before. Prints a table and, with --json FILE, writes the figures.
//
//   time_gpu [--json FILE] [--shapes A,B,...] [--sizes 1000x10000,...] [--cells all|table] [--fits 0]
//            [--gradients 0] [--repeats N] [--largest N] [--commit ID]
//
// --sizes: rows x length, of a ragged batch rows x longest.
// --cells table: only the float32 fits that scripts/compare_gpu.py compares.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cuda/device_array.hpp"
#include "cuda/shapes.hpp"
#include "gpu/timing.hpp"
#include "isofold/isofold.hpp"
#include "support/random.hpp"

namespace {

using namespace isofold_bench;
using namespace isofold_test;
using isofold::Backend;
using isofold::Executor;
using isofold::IsotonicProblem;
using isofold::Rows;

struct Work {
  std::string shape;
  std::int64_t rows;
  std::int64_t length;  // ragged rows: the longest
  bool single = true;
  bool weighted = false;
  bool ragged = false;  // lengths log-uniform from 1 to `length`

  [[nodiscard]] std::vector<std::int64_t> offsets() const {
    std::vector<std::int64_t> result{0};
    Random random(7);
    for (std::int64_t r = 0; r < rows; ++r) {
      const double drawn = std::pow(static_cast<double>(length) + 1, random.unit());
      result.push_back(result.back() + (ragged ? static_cast<std::int64_t>(drawn) : length));
    }
    return result;
  }
};

struct Options {
  std::string json;
  std::vector<std::string> shapes;
  std::vector<std::string> sizes;
  std::string commit = "unknown";
  int repeats = 20;
  std::int64_t largest = 200000000;
  bool fits = true;
  bool gradients = true;
  bool table_only = false;

  [[nodiscard]] bool wanted(const Work& work) const {
    const auto unlisted = [](const std::vector<std::string>& names, const std::string& name) {
      return !names.empty() && std::find(names.begin(), names.end(), name) == names.end();
    };
    if (unlisted(shapes, work.shape)) return false;
    if (unlisted(sizes, std::to_string(work.rows) + "x" + std::to_string(work.length))) return false;
    return work.ragged || work.rows * work.length <= largest;
  }
};

std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  std::istringstream stream(list);
  for (std::string name; std::getline(stream, name, ',');) names.push_back(name);
  return names;
}

// Pinned memory that every cell uses again: fresh pages cost more than the measuring.
template <class V>
V* host_memory(int which, std::int64_t count) {
  static std::pair<void*, std::size_t> held[2];
  auto& [memory, bytes] = held[which];
  const std::size_t needed = static_cast<std::size_t>(count) * sizeof(V);
  if (needed > bytes) {
    check_cuda(cudaFreeHost(memory), "pinned memory");
    check_cuda(cudaMallocHost(&memory, needed), "pinned memory");
    bytes = needed;
  }
  return static_cast<V*>(memory);
}

template <class V>
void upload(const DeviceArray<V>& to, const V* from) {
  check_cuda(cudaMemcpy(to.data(), from, to.bytes(), cudaMemcpyHostToDevice), "copy to the device");
}

// A cell's rows on the device, and the problem that they are.
template <class V>
struct Input {
  std::vector<std::int64_t> host_offsets;
  std::int64_t total;
  V* host_values;
  V* host_weights;
  bool weighted;
  DeviceArray<V> values;
  DeviceArray<V> weights;
  DeviceArray<std::int64_t> offsets;
  IsotonicProblem problem;

  explicit Input(const Work& work)
      : host_offsets(work.offsets()),
        total(host_offsets.back()),
        host_values(host_memory<V>(0, total)),
        host_weights(host_memory<V>(1, total)),
        weighted(fill_rows(work.shape, host_offsets, 1, host_values, host_weights)),
        values(total),
        weights(weighted || work.weighted ? total : 0),
        offsets(work.ragged ? host_offsets : std::vector<std::int64_t>{}) {
    if (work.weighted && !weighted) {
      for (std::int64_t i = 0; i < total; ++i) host_weights[i] = static_cast<V>(1 + i % 9);
      weighted = true;
    }
    upload(values, host_values);
    problem.values = values.data();
    if (weighted) {
      upload(weights, host_weights);
      problem.weights = weights.data();
    }
    problem.rows = work.ragged ? Rows::ragged_on_device(offsets.data(), work.rows, total)
                               : Rows::rectangle(work.rows, work.length);
  }
};

void checked(const isofold::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message.c_str());
  std::exit(2);
}

// How many kernels and fills of memory a call puts on its stream.
template <class Run>
std::size_t launches(cudaStream_t stream, Run run) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  run();
  cudaGraph_t graph;
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  std::size_t nodes = 0;
  check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "graph");
  cudaGraphDestroy(graph);
  return nodes;
}

// What a line of the table and of the JSON file begins with.
std::string cell_text(const Work& work, bool weighted) {
  char text[128];
  std::snprintf(text, sizeof text, "%-18s %9lld x %s%-10lld %s%s", work.shape.c_str(),
                static_cast<long long>(work.rows), work.ragged ? "<=" : "",
                static_cast<long long>(work.length), work.single ? "f32" : "f64", weighted ? " w" : "  ");
  return text;
}

std::string cell_json(const Work& work, std::int64_t total, bool weighted) {
  char text[256];
  std::snprintf(text, sizeof text,
                "\"shape\": \"%s\", \"rows\": %lld, \"length\": %lld, \"ragged\": %s, \"elements\": %lld, "
                "\"dtype\": \"%s\", \"weighted\": %s",
                work.shape.c_str(), static_cast<long long>(work.rows), static_cast<long long>(work.length),
                work.ragged ? "true" : "false", static_cast<long long>(total),
                work.single ? "float32" : "float64", weighted ? "true" : "false");
  return text;
}

template <class V>
void run(const Work& work, const Options& options, std::string& lines) {
  const Input<V> input(work);
  const DeviceArray<V> fit(input.total);
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream;
  std::int64_t bytes = 0;
  checked(isofold::isotonic_regression_scratch(input.problem, &bytes));
  const DeviceArray<unsigned char> scratch(bytes);
  executor.scratch = scratch.data();
  executor.scratch_bytes = bytes;
  const auto solve = [&] {
    checked(isofold::isotonic_regression(input.problem, {fit.data(), nullptr}, executor));
  };
  const Quartiles fitted = timed(options.repeats, stream, solve);
  const std::size_t launched = launches(stream, solve);
  // A copy of what is read and written: values, and weights where there are some.
  const Quartiles copy = timed(options.repeats, stream, [&] {
    for (const auto* from : {&input.values, &input.weights}) {
      if (from->count() == 0) continue;
      check_cuda(cudaMemcpyAsync(fit.data(), from->data(), from->bytes(), cudaMemcpyDeviceToDevice, stream),
                 "copy");
    }
  });
  cudaStreamDestroy(stream);
  std::printf("%s  %8.3f ms (%.3f-%.3f)  copy %7.3f  ratio %6.2f  scratch %.2fx  launches %zu\n",
              cell_text(work, input.weighted).c_str(), fitted.median, fitted.low, fitted.high, copy.median,
              fitted.median / copy.median,
              static_cast<double>(bytes) / static_cast<double>(input.values.bytes()), launched);
  char line[512];
  std::snprintf(
      line, sizeof line,
      "    {%s, \"ms\": [%.5f, %.5f, %.5f], \"copy_ms\": [%.5f, %.5f, %.5f], \"scratch_bytes\": %lld, "
      "\"launches\": %zu}",
      cell_json(work, input.total, input.weighted).c_str(), fitted.low, fitted.median, fitted.high, copy.low,
      copy.median, copy.high, static_cast<long long>(bytes), launched);
  lines += (lines.empty() ? "" : ",\n") + std::string(line);
}

// The gradient of a fit: in the values alone, and in the weights too. Beside it the fit itself, with blocks.
template <class V>
void run_gradient(const Work& work, const Options& options, std::string& lines) {
  const Input<V> input(work);
  const IsotonicProblem& problem = input.problem;
  const std::int64_t total = input.total;
  // What comes in: the values backwards, times 1, 2 or 3.
  std::reverse(input.host_values, input.host_values + total);
  for (std::int64_t i = 0; i < total; ++i) input.host_values[i] *= static_cast<V>(1 + i % 3);
  const DeviceArray<V> gradient(total);
  upload(gradient, input.host_values);
  const DeviceArray<V> in_values(total);
  const DeviceArray<V> in_weights(total);
  const DeviceArray<std::uint8_t> starts(total);
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream;
  std::int64_t fit_bytes = 0;
  std::int64_t bytes = 0;
  checked(isofold::isotonic_regression_scratch(problem, &fit_bytes));
  checked(isofold::isotonic_gradient_scratch(problem, &bytes));
  const DeviceArray<unsigned char> scratch(std::max(fit_bytes, bytes));
  executor.scratch = scratch.data();
  executor.scratch_bytes = scratch.count();
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
    std::printf("%s  %8.3f ms (%.3f-%.3f)  fit %7.3f  ratio %6.2f  %s\n",
                cell_text(work, input.weighted).c_str(), time.median, time.low, time.high, fitted.median,
                time.median / fitted.median, name);
    char line[512];
    std::snprintf(line, sizeof line,
                  "    {\"call\": \"%s\", %s, \"ms\": [%.5f, %.5f, %.5f], \"fit_ms\": [%.5f, %.5f, %.5f], "
                  "\"scratch_bytes\": %lld}",
                  name, cell_json(work, total, input.weighted).c_str(), time.low, time.median, time.high,
                  fitted.low, fitted.median, fitted.high, static_cast<long long>(bytes));
    lines += (lines.empty() ? "" : ",\n") + std::string(line);
  }
  cudaStreamDestroy(stream);
}

// The cells that scripts/compare_gpu.py looks for.
std::vector<Work> table_cells() {
  std::vector<Work> cells;
  for (const std::int64_t length : {100000000LL, 10000000LL}) {
    for (const char* shape : {"noise", "labels_straight", "decreasing", "constant", "consecutive_small",
                              "steep_noise", "sawtooth1e5", "sawtooth5003", "cliff", "rising_then_noise"}) {
      cells.push_back({shape, 1, length});
    }
  }
  cells.push_back({"noise", 1, 1000000});
  for (const char* shape : {"noise", "decreasing", "consecutive_small"}) {
    for (const auto& [rows, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {100, 100000}, {1000, 10000}, {10000, 1000}, {1000000, 16}}) {
      cells.push_back({shape, rows, length});
    }
  }
  cells.push_back({"labels_straight", 1000000, 16});
  for (const char* shape : {"constant", "sawtooth5003", "consecutive"}) cells.push_back({shape, 100, 1000});
  cells.push_back({"steep_noise", 10000, 512});
  cells.push_back({"steep_noise", 100000, 32});
  return cells;
}

std::vector<Work> other_cells() {
  std::vector<Work> cells;
  for (const char* shape : {"labels", "increasing", "tens", "half", "mirrored_cliff"}) {
    cells.push_back({shape, 1, 100000000});
  }
  cells.push_back({"noise", 1, 100000});
  for (const char* shape : {"noise", "increasing"}) cells.push_back({shape, 100000, 100});
  cells.push_back({"increasing", 1000000, 16});
  for (const std::int64_t rows : {100, 1000, 10000}) cells.push_back({"noise", rows, 4096});
  cells.push_back({"noise", 100000, 10000, true, false, true});
  cells.push_back({"noise", 11500, 100000, true, false, true});
  cells.push_back({"noise", 1, 100000000, true, true});
  for (const char* shape : {"noise", "increasing", "decreasing", "steep_noise"}) {
    cells.push_back({shape, 1, 100000000, false});
  }
  for (const char* shape : {"noise", "increasing", "ninths", "decimals", "labels"}) {
    cells.push_back({shape, 1, 10000000, false});
  }
  for (const char* shape : {"ninths", "decimals"}) cells.push_back({shape, 1, 10000000});
  cells.push_back({"noise", 10000, 1000, false});
  cells.push_back({"noise", 1000000, 16, false});
  for (const bool single : {true, false}) {
    for (const char* shape : {"noise", "rates"}) cells.push_back({shape, 1, 10000000, single, true});
  }
  return cells;
}

std::vector<Work> gradient_cells() {
  std::vector<Work> cells;
  for (const char* shape : {"noise", "increasing"}) {
    cells.push_back({shape, 1, 100000000});
    cells.push_back({shape, 1000000, 16});
  }
  cells.push_back({"tens", 1, 100000000});
  cells.push_back({"noise", 1, 100000000, true, true});
  cells.push_back({"noise", 1, 10000000, false});
  return cells;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--json") options.json = argv[i + 1];
    if (option == "--shapes") options.shapes = names_in(argv[i + 1]);
    if (option == "--cells") options.table_only = std::string(argv[i + 1]) == "table";
    if (option == "--sizes") options.sizes = names_in(argv[i + 1]);
    if (option == "--commit") options.commit = argv[i + 1];
    if (option == "--repeats") options.repeats = std::atoi(argv[i + 1]);
    if (option == "--fits") options.fits = std::string(argv[i + 1]) == "1";
    if (option == "--gradients") options.gradients = std::string(argv[i + 1]) == "1";
    if (option == "--largest") options.largest = std::atoll(argv[i + 1]);
  }
  std::vector<Work> fits = table_cells();
  if (!options.table_only) {
    for (const Work& work : other_cells()) fits.push_back(work);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);

  std::string lines;
  for (const Work& work : fits) {
    if (!options.fits || !options.wanted(work)) continue;
    if (work.single) {
      run<float>(work, options, lines);
    } else {
      run<double>(work, options, lines);
    }
  }
  for (const Work& work : gradient_cells()) {
    if (options.table_only || !options.gradients || !options.wanted(work)) continue;
    if (work.single) {
      run_gradient<float>(work, options, lines);
    } else {
      run_gradient<double>(work, options, lines);
    }
  }
  write_record(options.json, options.commit, options.repeats, lines);
  return 0;
}
