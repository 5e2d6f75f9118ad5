// Times segment reductions on the GPU beside device copies that move as many bytes as the reduction reads
// and, for dots in float32, beside CUB's segmented reduce, in one run: medians and quartiles, cold (each call
// reads other buffers than the ones before, 256 MB and more of them) and warm. With --json FILE, writes the
// figures.
//
//   time_segments [--json FILE] [--repeats N] [--commit ID] [--only TEXT]
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "gpu/cub_segments.hpp"
#include "isofold/isofold.hpp"
#include "support/random.hpp"

namespace {

using namespace isofold_test;
using isofold::Executor;
using isofold::Rows;
using isofold::SegmentReduction;
using isofold::SegmentValue;

struct Quartiles {
  double low;
  double median;
  double high;
};

struct Cell {
  const char* what;  // "dot", "norm", "sum", "dots"
  std::int64_t segments;
  std::int64_t length;
  bool single = true;
  bool ragged = false;  // the same segments by offsets
};

struct Options {
  std::string json;
  std::string commit = "unknown";
  std::string only;
  int repeats = 30;
};

void checked(const isofold::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message.c_str());
  std::exit(2);
}

template <class Run>
Quartiles timed(int repeats, cudaStream_t stream, Run run) {
  cudaEvent_t start;
  cudaEvent_t stop;
  check_cuda(cudaEventCreate(&start), "event");
  check_cuda(cudaEventCreate(&stop), "event");
  std::vector<double> times;
  for (int i = -3; i < repeats; ++i) {
    check_cuda(cudaEventRecord(start, stream), "event");
    run(i + 3);
    check_cuda(cudaEventRecord(stop, stream), "event");
    check_cuda(cudaEventSynchronize(stop), "run");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "event");
    if (i >= 0) times.push_back(1000.0 * ms);
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 4], times[n / 2], times[3 * n / 4]};
}

// A call's launches, and the time of one when replayed as a graph, without the host's part.
struct Replayed {
  std::size_t launches;
  Quartiles time;
};
template <class Run>
Replayed replayed(int repeats, cudaStream_t stream, int sets, Run run) {
  std::vector<cudaGraphExec_t> graphs;
  std::size_t nodes = 0;
  for (int set = 0; set < sets; ++set) {
    check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
    run(set);
    cudaGraph_t graph;
    check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
    check_cuda(cudaGraphGetNodes(graph, nullptr, &nodes), "graph");
    graphs.push_back(nullptr);
    check_cuda(cudaGraphInstantiate(&graphs.back(), graph, 0), "graph");
    cudaGraphDestroy(graph);
  }
  const Quartiles time = timed(repeats, stream, [&](int i) {
    check_cuda(cudaGraphLaunch(graphs[static_cast<std::size_t>(i % sets)], stream), "replay");
  });
  for (cudaGraphExec_t graph : graphs) cudaGraphExecDestroy(graph);
  return {nodes, time};
}

// Its time, its largest error relative to the exact value, and whether the first segments have the bits in
// the batch that they have alone.
std::string cub_figures(const Cell& cell, const Options& options, const std::vector<const float*>& a,
                        const std::vector<const float*>& b, float* out, const Executor& executor,
                        const Rows& segments, cudaStream_t stream) {
  std::size_t bytes = 0;
  const auto call = [&](void* temporary, std::size_t set, std::int64_t count, std::int64_t first,
                        float* into) {
    check_cuda(
        isofold_bench::cub_segmented_dot(temporary, &bytes, a[set] + first * cell.length,
                                         b[set] + first * cell.length, count, cell.length, into, stream),
        "CUB");
  };
  call(nullptr, 0, cell.segments, 0, out);
  const DeviceArray<unsigned char> temporary(static_cast<std::int64_t>(bytes) + 1);
  const Quartiles time = timed(options.repeats, stream, [&](int i) {
    call(temporary.data(), static_cast<std::size_t>(i) % a.size(), cell.segments, 0, out);
  });
  const auto count = static_cast<std::size_t>(std::min<std::int64_t>(cell.segments, 64));
  const DeviceArray<double> exact(cell.segments);
  checked(isofold::segment_dot(a[0], b[0], segments, exact.data(), executor));
  call(temporary.data(), 0, cell.segments, 0, out);
  for (std::size_t s = 0; s < count; ++s) {
    call(temporary.data(), 0, 1, static_cast<std::int64_t>(s), out + cell.segments + s);
  }
  check_cuda(cudaStreamSynchronize(stream), "CUB");
  std::vector<float> batched(count);
  std::vector<float> alone(count);
  check_cuda(cudaMemcpy(batched.data(), out, count * sizeof(float), cudaMemcpyDeviceToHost), "copy");
  check_cuda(cudaMemcpy(alone.data(), out + cell.segments, count * sizeof(float), cudaMemcpyDeviceToHost),
             "copy");
  const std::vector<double> truth = exact.host();
  double error = 0;
  for (std::size_t s = 0; s < count; ++s) {
    error = std::max(error, std::abs(static_cast<double>(batched[s]) - truth[s]) / std::abs(truth[s]));
  }
  const bool same = batched == alone;
  std::printf("      CUB %8.2f us (%.2f-%.2f), error %.2e, batched %s alone\n", time.median, time.low,
              time.high, error, same ? "is" : "is not");
  char text[256];
  std::snprintf(text, sizeof text,
                ", \"cub_us\": [%.3f, %.3f, %.3f], \"cub_error\": %.4e, \"cub_batched_is_alone\": %s",
                time.low, time.median, time.high, error, same ? "true" : "false");
  return text;
}

template <class T>
void run(const Cell& cell, const Options& options, std::string& lines) {
  const std::int64_t total = cell.segments * cell.length;
  const std::string what = cell.what;
  const bool two = what == "dot" || what == "dots";
  const std::int64_t read = total * static_cast<std::int64_t>(sizeof(T)) * (two ? 2 : 1);
  // Enough sets of inputs that none is left in the cache from before: it holds 60 MB.
  const int sets = static_cast<int>(std::clamp<std::int64_t>((256LL << 20) / read + 1, 2, 64));
  std::vector<T> host(static_cast<std::size_t>(total));
  Random random(1);
  for (T& x : host) x = static_cast<T>(random.normal());
  std::vector<std::unique_ptr<DeviceArray<T>>> a;
  std::vector<std::unique_ptr<DeviceArray<T>>> b;
  for (int set = 0; set < sets; ++set) {
    a.push_back(std::make_unique<DeviceArray<T>>(host));
    std::reverse(host.begin(), host.end());
    if (two) b.push_back(std::make_unique<DeviceArray<T>>(host));
  }
  std::vector<std::int64_t> ends;
  for (std::int64_t s = 0; cell.ragged && s <= cell.segments; ++s) ends.push_back(s * cell.length);
  const DeviceArray<std::int64_t> offsets(ends);
  const Rows segments = cell.ragged ? Rows::ragged_on_device(offsets.data(), cell.segments, total)
                                    : Rows::rectangle(cell.segments, cell.length);
  const DeviceArray<T> out(3 * cell.segments + 64);
  cudaStream_t stream;
  check_cuda(cudaStreamCreate(&stream), "stream");
  Executor executor;
  executor.backend = isofold::Backend::cuda;
  executor.stream = stream;
  std::int64_t bytes = 0;
  checked(isofold::segment_reductions_scratch(segments, 3, &bytes));
  const DeviceArray<unsigned char> scratch(bytes);
  executor.scratch = scratch.data();
  executor.scratch_bytes = bytes;
  const auto reduce = [&](int i) {
    const auto set = static_cast<std::size_t>(i % sets);
    const T* x = a[set]->data();
    const T* y = two ? b[set]->data() : nullptr;
    SegmentReduction reductions[3];
    std::int64_t count = 1;
    if (what == "sum") reductions[0] = {SegmentValue::sum, x, {}, out.data()};
    if (what == "norm") reductions[0] = {SegmentValue::norm, x, {}, out.data()};
    if (two) reductions[0] = {SegmentValue::dot, x, y, out.data()};
    if (what == "dots") {
      // What conjugate gradients ask for: r.r and r.z.
      reductions[1] = {SegmentValue::norm, x, {}, out.data() + cell.segments};
      count = 2;
    }
    checked(isofold::segment_reductions(reductions, count, segments, executor));
  };
  const Quartiles cold = timed(options.repeats, stream, reduce);
  const Quartiles warm = timed(options.repeats, stream, [&](int) { reduce(0); });
  const Replayed graph = replayed(options.repeats, stream, sets, reduce);
  // Reads and writes together move what the reduction reads.
  const DeviceArray<unsigned char> copied(read / 2);
  const Quartiles copy = timed(options.repeats, stream, [&](int i) {
    const auto set = static_cast<std::size_t>(i % sets);
    check_cuda(
        cudaMemcpyAsync(copied.data(), a[set]->data(), copied.bytes(), cudaMemcpyDeviceToDevice, stream),
        "copy");
  });
  std::string cub;
  if constexpr (sizeof(T) == sizeof(float)) {
    if (what == "dot" && !cell.ragged) {
      std::vector<const float*> x;
      std::vector<const float*> y;
      for (std::size_t set = 0; set < a.size(); ++set) {
        x.push_back(a[set]->data());
        y.push_back(b[set]->data());
      }
      cub = cub_figures(cell, options, x, y, out.data(), executor, segments, stream);
    }
  }
  cudaStreamDestroy(stream);
  std::printf(
      "%-5s %8lld x %-10lld %s%s  cold %8.2f us (%.2f-%.2f)  warm %8.2f  graph %8.2f  copy %8.2f  ratio "
      "%5.2f  "
      "graph %5.2f  launches %zu\n",
      cell.what, static_cast<long long>(cell.segments), static_cast<long long>(cell.length),
      cell.single ? "f32" : "f64", cell.ragged ? " ragged" : "", cold.median, cold.low, cold.high,
      warm.median, graph.time.median, copy.median, cold.median / copy.median, graph.time.median / copy.median,
      graph.launches);
  char line[1024];
  std::snprintf(
      line, sizeof line,
      "    {\"call\": \"%s\", \"segments\": %lld, \"length\": %lld, \"dtype\": \"%s\", \"ragged\": %s, "
      "\"bytes_read\": %lld, \"cold_us\": [%.3f, %.3f, %.3f], \"warm_us\": [%.3f, %.3f, %.3f], "
      "\"cold_graph_us\": [%.3f, %.3f, %.3f], \"copy_us\": [%.3f, %.3f, %.3f], \"scratch_bytes\": %lld, "
      "\"launches\": %zu%s}",
      cell.what, static_cast<long long>(cell.segments), static_cast<long long>(cell.length),
      cell.single ? "float32" : "float64", cell.ragged ? "true" : "false", static_cast<long long>(read),
      cold.low, cold.median, cold.high, warm.low, warm.median, warm.high, graph.time.low, graph.time.median,
      graph.time.high, copy.low, copy.median, copy.high, static_cast<long long>(bytes), graph.launches,
      cub.c_str());
  lines += (lines.empty() ? "" : ",\n") + std::string(line);
}

std::vector<Cell> cells() {
  std::vector<Cell> all;
  for (const bool single : {true, false}) {
    for (const bool ragged : {false, true}) {
      all.push_back({"dot", 4, 4194304, single, ragged});
      all.push_back({"dot", 1000000, 16, single, ragged});
      all.push_back({"dot", 1, 100000000, single, ragged});
      all.push_back({"dot", 4, 111580, single, ragged});
      all.push_back({"dot", 100000, 100, single, ragged});
      all.push_back({"dot", 10000, 1000, single, ragged});
    }
    all.push_back({"norm", 4, 4194304, single});
    all.push_back({"sum", 4, 4194304, single});
    all.push_back({"dots", 4, 4194304, single});
    all.push_back({"sum", 5000000, 2, single});
  }
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--json") options.json = argv[i + 1];
    if (option == "--commit") options.commit = argv[i + 1];
    if (option == "--only") options.only = argv[i + 1];
    if (option == "--repeats") options.repeats = std::atoi(argv[i + 1]);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  cudaDeviceProp device;
  check_cuda(cudaGetDeviceProperties(&device, 0), "device");
  int driver = 0;
  check_cuda(cudaDriverGetVersion(&driver), "driver");
  std::string lines;
  for (const Cell& cell : cells()) {
    if (!options.only.empty() && options.only != cell.what) continue;
    if (cell.single) {
      run<float>(cell, options, lines);
    } else {
      run<double>(cell, options, lines);
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
