// Times histograms and best splits on the device beside a floor: a device copy that moves as many bytes as
// the call has to read. Medians and quartiles of event times. Prints a table and, with --json FILE, writes
// it.
//
//   time_trees [--json FILE] [--rows N] [--features N] [--repeats N] [--commit ID]
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "isofold/isofold.hpp"
#include "support/random.hpp"

namespace {

using namespace isofold_test;
using isofold::BinMatrix;
using isofold::BinType;
using isofold::Executor;

struct Options {
  std::string json;
  std::string commit = "unknown";
  std::int64_t rows = 10500000;
  std::int32_t features = 28;
  int repeats = 20;
};

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
    if (i >= 0) times.push_back(static_cast<double>(ms));
  }
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 4], times[n / 2], times[3 * n / 4]};
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options) {
    check_cuda(cudaStreamCreate(&stream_), "stream");
    executor_.backend = isofold::Backend::cuda;
    executor_.stream = stream_;
    // Scratch comes from the pool in stream order; it shall stay there between calls.
    cudaMemPool_t pool = nullptr;
    check_cuda(cudaDeviceGetDefaultMemPool(&pool, 0), "pool");
    std::uint64_t all = ~std::uint64_t{0};
    check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all), "pool");
  }

  // `read`: bytes that the call cannot do without reading.
  template <class Run>
  void cell(const std::string& name, std::int64_t read, Run run) {
    const Quartiles floor = copy_of(read);
    const Quartiles found = timed(options_.repeats, stream_, [&] { demand(run(executor_), name); });
    std::printf("%-58s %8.4f ms [%.4f, %.4f]   floor %.4f ms   %.2f times it\n", name.c_str(), found.median,
                found.low, found.high, floor.median, found.median / floor.median);
    char line[400];
    std::snprintf(line, sizeof line,
                  "    {\"name\": \"%s\", \"ms\": %.5f, \"low\": %.5f, \"high\": %.5f, \"bytes\": %lld, "
                  "\"floor_ms\": %.5f, \"ratio\": %.3f}",
                  name.c_str(), found.median, found.low, found.high, static_cast<long long>(read),
                  floor.median, found.median / floor.median);
    if (!lines_.empty()) lines_ += ",\n";
    lines_ += line;
  }

  void write(const std::string& device) const {
    if (options_.json.empty()) return;
    std::ofstream file(options_.json);
    file << "{\n  \"device\": \"" << device << "\",\n  \"commit\": \"" << options_.commit
         << "\",\n  \"repeats\": " << options_.repeats << ",\n  \"cells\": [\n"
         << lines_ << "\n  ]\n}\n";
  }

 private:
  static void demand(const isofold::Status& status, const std::string& what) {
    if (status.ok()) return;
    std::fprintf(stderr, "%s: %s\n", what.c_str(), status.message.c_str());
    std::exit(2);
  }

  // A copy reads and writes: of half as many bytes.
  Quartiles copy_of(std::int64_t bytes) {
    const DeviceArray<std::uint8_t> from(bytes / 2);
    const DeviceArray<std::uint8_t> to(bytes / 2);
    return timed(options_.repeats, stream_, [&] {
      check_cuda(cudaMemcpyAsync(to.data(), from.data(), static_cast<std::size_t>(bytes / 2),
                                 cudaMemcpyDeviceToDevice, stream_),
                 "copy");
    });
  }

  Options options_;
  cudaStream_t stream_ = nullptr;
  Executor executor_;
  std::string lines_;
};

struct Sums {
  DeviceArray<std::int64_t> gradients;
  DeviceArray<std::int64_t> hessians;
  DeviceArray<std::int32_t> counts;
  explicit Sums(std::int64_t entries) : gradients(entries), hessians(entries), counts(entries) {}
  [[nodiscard]] isofold::HistogramArrays arrays() const {
    return {gradients.data(), hessians.data(), counts.data()};
  }
};

std::vector<std::uint8_t> random_bins(std::int64_t count, bool skewed) {
  std::vector<std::uint8_t> bins(static_cast<std::size_t>(count));
  Random random(1, static_cast<std::uint64_t>(skewed));
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const std::uint64_t bits = random.bits();
    bins[i] = skewed && (bits >> 8) % 10 != 0 ? 0 : static_cast<std::uint8_t>(bits);
  }
  return bins;
}

template <class V>
std::vector<V> random_values(std::int64_t count, bool gradients) {
  std::vector<V> values(static_cast<std::size_t>(count));
  Random random(2, static_cast<std::uint64_t>(gradients));
  for (V& value : values) value = static_cast<V>(gradients ? 2 * random.unit() - 1 : random.unit() / 4);
  return values;
}

void histograms(Bench& bench, const Options& options) {
  const std::int64_t rows = options.rows;
  const std::int32_t features = options.features;
  constexpr std::int32_t kBins = 256;
  constexpr std::int32_t kNodes = 256;
  const DeviceArray<double> g(random_values<double>(rows, true));
  const DeviceArray<double> h(random_values<double>(rows, false));
  const DeviceArray<float> g32(random_values<float>(rows, true));
  const DeviceArray<float> h32(random_values<float>(rows, false));
  const DeviceArray<isofold::QuantizedGradient> quantized(rows);
  const DeviceArray<isofold::GradientGrid> grid(1);
  const Sums one(std::int64_t{features} * kBins);
  const Sums many(std::int64_t{kNodes} * features * kBins);
  isofold::GradientProblem doubles;
  doubles.gradients = g.data();
  doubles.hessians = h.data();
  doubles.rows = rows;
  isofold::GradientProblem floats = doubles;
  floats.gradients = g32.data();
  floats.hessians = h32.data();
  const auto quantize = [&](const isofold::GradientProblem& problem, const Executor& executor) {
    return isofold::quantize_gradients(problem, nullptr, quantized.data(), grid.data(), executor);
  };
  bench.cell("quantize float32", rows * 8,
             [&](const Executor& executor) { return quantize(floats, executor); });
  bench.cell("quantize float64", rows * 16,
             [&](const Executor& executor) { return quantize(doubles, executor); });

  std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
  Random random(3);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random.below(kNodes));
  const DeviceArray<std::int32_t> node_ids(ids);
  for (const bool skewed : {false, true}) {
    const DeviceArray<std::uint8_t> bins(random_bins(rows * features, skewed));
    for (const bool row_major : {true, false}) {
      isofold::HistogramProblem problem;
      problem.bins = row_major ? BinMatrix::row_major(bins.data(), BinType::uint8, rows, features)
                               : BinMatrix::column_major(bins.data(), BinType::uint8, rows, features);
      problem.gradients = quantized.data();
      problem.bin_count = kBins;
      const std::string layout = std::string(row_major ? "row-major" : "column-major") +
                                 (skewed ? ", nine rows in ten in one bin" : "");
      bench.cell("histogram, one node, " + layout, rows * (features + 8), [&](const Executor& executor) {
        return isofold::histogram(problem, one.arrays(), executor);
      });
      bench.cell("quantize float64 and histogram, " + layout, rows * (features + 16),
                 [&](const Executor& executor) {
                   const isofold::Status status = quantize(doubles, executor);
                   return status.ok() ? isofold::histogram(problem, one.arrays(), executor) : status;
                 });
      isofold::HistogramProblem by_node = problem;
      by_node.node_ids = node_ids.data();
      by_node.nodes = kNodes;
      bench.cell(
          "histogram, 256 nodes by id, " + layout, rows * (features + 12),
          [&](const Executor& executor) { return isofold::histogram(by_node, many.arrays(), executor); });
    }
  }
}

void splits(Bench& bench) {
  constexpr std::int32_t kNodes = 256;
  constexpr std::int32_t kFeatures = 100;
  constexpr std::int32_t kBins = 256;
  constexpr std::int64_t kEntries = std::int64_t{kNodes} * kFeatures * kBins;
  // Every feature of a node has the node's rows: here as many in each bin.
  std::vector<std::int64_t> gradients(kEntries);
  Random random(4);
  for (std::int64_t i = 0; i < kEntries; i += 2) {
    const std::int64_t sum = random.between(-(1 << 30), 1 << 30);
    gradients[static_cast<std::size_t>(i)] = sum;
    gradients[static_cast<std::size_t>(i + 1)] = (1 << 20) - sum;
  }
  const DeviceArray<std::int64_t> g(gradients);
  const DeviceArray<std::int64_t> h(std::vector<std::int64_t>(kEntries, 40 << 20));
  const DeviceArray<std::int32_t> n(std::vector<std::int32_t>(kEntries, 40));
  const DeviceArray<isofold::Split> out(kNodes * 3);
  isofold::SplitProblem problem;
  problem.histogram = {g.data(), h.data(), n.data()};
  problem.grid = {-30, -24, 0};
  problem.nodes = kNodes;
  problem.features = kFeatures;
  problem.bin_count = kBins;
  bench.cell(
      "best splits, 256 nodes x 100 features x 256 bins", kEntries * 20,
      [&](const Executor& executor) { return isofold::best_splits(problem, out.data(), nullptr, executor); });
  isofold::SplitProblem three = problem;
  three.top_k = 3;
  bench.cell("the same, top 3", kEntries * 20, [&](const Executor& executor) {
    return isofold::best_splits(three, out.data(), nullptr, executor);
  });
  std::vector<isofold::FeatureRules> rules(kFeatures);
  for (isofold::FeatureRules& rule : rules) {
    rule.bins = kBins;
    rule.has_missing = 1;
  }
  const DeviceArray<isofold::FeatureRules> with_missing(rules);
  isofold::SplitProblem both = problem;
  both.feature_rules = with_missing.data();
  bench.cell("the same, with missing values", kEntries * 20, [&](const Executor& executor) {
    return isofold::best_splits(both, out.data(), nullptr, executor);
  });
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--json") options.json = argv[i + 1];
    if (option == "--commit") options.commit = argv[i + 1];
    if (option == "--rows") options.rows = std::atoll(argv[i + 1]);
    if (option == "--features") options.features = std::atoi(argv[i + 1]);
    if (option == "--repeats") options.repeats = std::atoi(argv[i + 1]);
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  cudaDeviceProp device;
  check_cuda(cudaGetDeviceProperties(&device, 0), "device");
  Bench bench(options);
  splits(bench);
  histograms(bench, options);
  bench.write(device.name);
  return 0;
}
