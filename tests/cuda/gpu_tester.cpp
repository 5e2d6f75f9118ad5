// The CUDA executor against the CPU executor, bit by bit: the exact cases, random ragged batches of the zoo's
// families, long rows of every shape, refused rows, tie groups, gradients, behaviour on streams. Prints what
// differs, and exits 1 if anything does.
//
//   gpu_tester [--cases FILE] [--batches N] [--longest N] [--seed N] [--only SHAPE] [--huge 1] [--verbose 1]
//              [--streams 0] [--ties 0] [--fits 0] [--first K --step N]
//
// --fits 0: the gradients alone; --ties 0: without tie groups. --first K --step N: of the random batches the
// K-th and every N-th after it, so that N processes share a run; --streams 0 leaves out what other processes
// on the GPU would disturb.
// --huge 1: after these, rows of more than 2^31 elements, judged in exact integers; --huge only: just those.
#include <cuda_runtime.h>
#include <algorithm>

#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/batch_range.hpp"
#include "cuda/device_array.hpp"
#include "cuda/gradient_checks.hpp"
#include "cuda/gradient_streams.hpp"
#include "cuda/huge_rows.hpp"
#include "cuda/shapes.hpp"
#include "cuda/stream_checks.hpp"
#include "cuda/tie_checks.hpp"
#include "cuda/tree_checks.hpp"
#include "isofold/isofold.hpp"
#include "support/case_file.hpp"
#include "support/row_zoo.hpp"

namespace {

using namespace isofold_test;
using isofold::Backend;
using isofold::ConstArray;
using isofold::Executor;
using isofold::IsotonicFit;
using isofold::IsotonicProblem;
using isofold::MutableArray;
using isofold::Rows;

int failures = 0;
bool verbose = false;

struct Settings {
  bool increasing = true;
  double lower = -INFINITY;
  double upper = INFINITY;
  std::int64_t shift = 0;
};

template <class T>
std::vector<T> narrowed(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

template <class T>
struct Answer {
  std::vector<T> fit;
  std::vector<std::uint8_t> starts;
};

// Runs one problem on both executors and compares. `offsets` empty: `rows` rows of equal length.
template <class V, class W>
bool agree(const std::string& name, const std::vector<V>& values, const std::vector<W>& weights,
           const std::vector<std::int64_t>& offsets, std::int64_t rows, const Settings& settings) {
  const auto total = static_cast<std::int64_t>(values.size());
  if (verbose) std::printf("%s\n", name.c_str());
  IsotonicProblem problem;
  problem.increasing = settings.increasing;
  problem.lower_bound = settings.lower;
  problem.upper_bound = settings.upper;
  problem.values = values.data();
  if (!weights.empty()) problem.weights = weights.data();
  problem.rows = offsets.empty()
                     ? Rows::rectangle(rows, rows == 0 ? 0 : total / rows)
                     : Rows::ragged(offsets.data(), static_cast<std::int64_t>(offsets.size()) - 1);
  Answer<V> expected{std::vector<V>(values.size()), std::vector<std::uint8_t>(values.size())};
  const isofold::Status cpu =
      isofold::isotonic_regression(problem, {expected.fit.data(), expected.starts.data()}, {});
  if (!cpu.ok()) {
    std::printf("%s: the CPU executor says %s\n", name.c_str(), cpu.message.c_str());
    ++failures;
    return false;
  }

  const DeviceArray<V> device_values(values, settings.shift);
  const DeviceArray<W> device_weights(weights, settings.shift);
  const DeviceArray<std::int64_t> device_offsets(offsets);
  const DeviceArray<V> fit(total, settings.shift);
  const DeviceArray<std::uint8_t> starts(total, settings.shift);
  problem.values = device_values.data();
  if (!weights.empty()) problem.weights = device_weights.data();
  if (!offsets.empty()) {
    problem.rows =
        Rows::ragged_on_device(device_offsets.data(), static_cast<std::int64_t>(offsets.size()) - 1, total);
  }
  Executor executor;
  executor.backend = Backend::cuda;
  const isofold::Status gpu = isofold::isotonic_regression(problem, {fit.data(), starts.data()}, executor);
  if (!gpu.ok()) {
    std::printf("%s: the CUDA executor says %s\n", name.c_str(), gpu.message.c_str());
    ++failures;
    return false;
  }
  check_cuda(cudaDeviceSynchronize(), name.c_str());
  const Answer<V> found{fit.host(), starts.host()};
  bool same = true;
  if (!fit.margins_intact() || !starts.margins_intact()) {
    std::printf("%s: wrote outside its outputs\n", name.c_str());
    same = false;
  }
  if (std::memcmp(found.fit.data(), expected.fit.data(), values.size() * sizeof(V)) != 0 ||
      found.starts != expected.starts) {
    std::int64_t at = 0;
    std::int64_t wrong = 0;
    for (std::int64_t i = total - 1; i >= 0; --i) {
      const auto k = static_cast<std::size_t>(i);
      if (std::memcmp(&found.fit[k], &expected.fit[k], sizeof(V)) != 0 ||
          found.starts[k] != expected.starts[k]) {
        at = i;
        ++wrong;
      }
    }
    const auto k = static_cast<std::size_t>(at);
    std::size_t row = 0;
    while (row + 1 < offsets.size() && offsets[row + 1] <= at) ++row;
    std::printf(
        "%s: %lld of %lld differ, first at %lld (row %zu, position %lld, length %lld): %.17g, starts %d, not "
        "%.17g, starts %d\n",
        name.c_str(), static_cast<long long>(wrong), static_cast<long long>(total),
        static_cast<long long>(at), row, static_cast<long long>(offsets.empty() ? at : at - offsets[row]),
        static_cast<long long>(offsets.empty() ? total / rows : offsets[row + 1] - offsets[row]),
        static_cast<double>(found.fit[k]), found.starts[k], static_cast<double>(expected.fit[k]),
        expected.starts[k]);
    same = false;
    const std::int64_t begin = offsets.empty() ? at / (total / rows) * (total / rows) : offsets[row];
    const std::int64_t end = offsets.empty() ? begin + total / rows : offsets[row + 1];
    if (end - begin <= 100) {
      for (std::int64_t i = begin; i < end; ++i) {
        const auto j = static_cast<std::size_t>(i);
        std::printf("  %a %a: %a %d, not %a %d\n", static_cast<double>(values[j]),
                    weights.empty() ? 1.0 : static_cast<double>(weights[j]),
                    static_cast<double>(found.fit[j]), found.starts[j], static_cast<double>(expected.fit[j]),
                    expected.starts[j]);
      }
    }
  }
  if (!same) ++failures;
  return same;
}

template <class Use>
void with_weight_types(const std::vector<double>& weights, bool single_too, Use use) {
  if (weights.empty()) {
    use(std::vector<float>{});
    return;
  }
  use(weights);
  if (single_too) use(narrowed<float>(weights));
}

void run_cases(const std::string& path) {
  int count = 0;
  for (const IsotonicCase& row : read_isotonic_cases(path)) {
    const auto run = [&](auto value) {
      using V = decltype(value);
      const std::vector<V> values = narrowed<V>(row.values);
      with_weight_types(row.weights, false, [&](const auto& weights) {
        Settings settings;
        settings.increasing = row.increasing;
        agree(row.name, values, weights, {}, 1, settings);
      });
    };
    if (row.type == DataType::float32) run(float{});
    if (row.type == DataType::float64) run(double{});
    ++count;
  }
  std::printf("cases: %d rows\n", count);
}

// Ragged batches of zoo rows; lengths mostly short, some up to a few chunks.
void run_batches(const BatchRange& batches, std::uint64_t seed) {
  std::int64_t rows_done = 0;
  const auto& families = value_families();
  for (std::int64_t b = batches.first; b < batches.end; b += batches.step) {
    Random random(seed, static_cast<std::uint64_t>(b));
    const bool single = random.chance(0.5);
    const auto weighting = random.below(3);
    const bool single_weights = random.chance(0.5);
    const bool rectangle = random.chance(0.2);
    const std::int64_t most = random.chance(0.7) ? 70 : (random.chance(0.7) ? 1500 : 20000);
    const std::int64_t rows = most == 70 ? 8192 : (most == 1500 ? 512 : 48);
    const std::int64_t fixed = random.between(1, most);
    std::vector<double> values;
    std::vector<double> weights;
    std::vector<std::int64_t> offsets{0};
    for (std::int64_t r = 0; r < rows; ++r) {
      const Family& family =
          families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))];
      const std::int64_t length = rectangle ? fixed : random.between(0, most);
      ZooRow zoo;
      zoo.values_type = single ? DataType::float32 : DataType::float64;
      zoo.weights_type =
          weighting == 0 ? DataType::none : (single_weights ? DataType::float32 : DataType::float64);
      if (length > 0) family.fill(random, length, zoo);
      values.insert(values.end(), zoo.values.begin(), zoo.values.end());
      if (weighting != 0) {
        Doubles drawn;
        if (zoo.weights.empty()) {
          fill_weights(random, zoo.weights_type, length, drawn);
        } else {
          for (const double w : zoo.weights) drawn.push_back(quantize(zoo.weights_type, w));
        }
        weights.insert(weights.end(), drawn.begin(), drawn.end());
      }
      offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
    Settings settings;
    settings.increasing = random.chance(0.5);
    settings.shift = random.below(5);
    if (random.chance(0.2)) {
      settings.lower = -1;
      settings.upper = 1.3;
    }
    const std::string name =
        "batch " + std::to_string(b) + (single ? ", float32" : ", float64") +
        (weighting == 0 ? "" : (single_weights ? ", float32 weights" : ", float64 weights")) +
        (settings.increasing ? ", up" : ", down") + (rectangle ? ", rectangle" : ", ragged");
    if (rectangle) offsets.clear();
    const auto run = [&](auto value) {
      using V = decltype(value);
      if (single_weights) {
        agree(name, narrowed<V>(values), narrowed<float>(weights), offsets, rows, settings);
      } else {
        agree(name, narrowed<V>(values), weights, offsets, rows, settings);
      }
    };
    if (single) {
      run(float{});
    } else {
      run(double{});
    }
    rows_done += rows;
  }
  std::printf("random batches: %lld rows\n", static_cast<long long>(rows_done));
}

void run_long_rows(std::int64_t longest, const std::string& only) {
  std::int64_t done = 0;
  for (const std::int64_t length :
       {1000LL, 1023LL, 8192LL, 9001LL, 16384LL, 100003LL, 262145LL, 1000000LL, 10000000LL, 100000000LL}) {
    if (length > longest) continue;
    for (const std::string& shape : shape_names()) {
      if (!only.empty() && shape != only) continue;
      if (shape == "wide" && length > 300000) continue;  // long accumulators over the whole row
      for (const bool single : {true, false}) {
        if (length >= 100000000 && !single) continue;
        std::vector<double> values;
        std::vector<double> weights;
        fill_shape(shape, length, 7, single, values, weights);
        Settings settings;
        settings.shift = length % 3;
        const std::string name = shape + ", " + std::to_string(length) + (single ? ", float32" : ", float64");
        const auto start = std::chrono::steady_clock::now();
        const auto run = [&](auto value) {
          using V = decltype(value);
          with_weight_types(weights, true, [&](const auto& typed) {
            agree(name, narrowed<V>(values), typed, {}, 1, settings);
          });
          if (length <= 1000000) {
            settings.increasing = false;
            with_weight_types(weights, false, [&](const auto& typed) {
              agree(name + ", down", narrowed<V>(values), typed, {}, 1, settings);
            });
          }
        };
        if (single) {
          run(float{});
        } else {
          run(double{});
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (seconds > 20) std::printf("%s took %.0f s\n", name.c_str(), seconds);
        ++done;
      }
    }
  }
  std::printf("long rows: %lld\n", static_cast<long long>(done));
}

// Rows with NaN, infinities and bad weights come out NaN and leave the others alone.
void run_refused() {
  for (const std::int64_t length : {5LL, 100LL, 900LL, 5000LL, 30000LL}) {
    const std::int64_t rows = 7;
    std::vector<double> values;
    std::vector<double> weights;
    fill_shape("noise", length * rows, 3, false, values, weights);
    weights.assign(values.size(), 2.0);
    const auto run = [&](bool spoiled) {
      std::vector<double> y = values;
      std::vector<double> w = weights;
      if (spoiled) {
        y[static_cast<std::size_t>(length + length / 2)] = NAN;
        y[static_cast<std::size_t>(3 * length)] = INFINITY;
        w[static_cast<std::size_t>(5 * length + length - 1)] = 0.0;
      }
      const DeviceArray<double> device_values(y);
      const DeviceArray<double> device_weights(w);
      const DeviceArray<double> fit(length * rows);
      const DeviceArray<std::uint8_t> starts(length * rows);
      IsotonicProblem problem;
      problem.values = device_values.data();
      problem.weights = device_weights.data();
      problem.rows = Rows::rectangle(rows, length);
      Executor executor;
      executor.backend = Backend::cuda;
      if (!isofold::isotonic_regression(problem, {fit.data(), starts.data()}, executor).ok()) ++failures;
      return Answer<double>{fit.host(), starts.host()};
    };
    const Answer<double> clean = run(false);
    const Answer<double> found = run(true);
    for (std::int64_t r = 0; r < rows; ++r) {
      const bool refused = r == 1 || r == 3 || r == 5;
      for (std::int64_t i = 0; i < length; ++i) {
        const auto k = static_cast<std::size_t>(r * length + i);
        const bool right = refused ? std::isnan(found.fit[k]) && found.starts[k] == (i == 0)
                                   : found.fit[k] == clean.fit[k] && found.starts[k] == clean.starts[k];
        if (right) continue;
        std::printf("refused rows of %lld: row %lld, position %lld\n", static_cast<long long>(length),
                    static_cast<long long>(r), static_cast<long long>(i));
        ++failures;
        break;
      }
    }
  }
  // Offsets that do not rise: all is NaN, and nothing outside is touched.
  const std::vector<std::int64_t> offsets{0, 10, 50, 40, 90, 100};
  std::vector<double> y(100);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<double>(i % 7);
  const DeviceArray<double> values(y);
  const DeviceArray<std::int64_t> device_offsets(offsets);
  const DeviceArray<double> fit(100);
  IsotonicProblem problem;
  problem.values = values.data();
  problem.rows = Rows::ragged_on_device(device_offsets.data(), 5, 100);
  Executor executor;
  executor.backend = Backend::cuda;
  if (!isofold::isotonic_regression(problem, {fit.data(), nullptr}, executor).ok()) ++failures;
  const std::vector<double> found = fit.host();
  if (!std::all_of(found.begin(), found.end(), [](double x) { return std::isnan(x); }) ||
      !fit.margins_intact()) {
    std::printf("bad offsets: not refused\n");
    ++failures;
  }
  std::printf("refused rows\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::string cases;
  std::string only;
  BatchRange batches{60, 0, 1};
  std::int64_t longest = 1000000;
  std::uint64_t seed = 1;
  bool fits = true;
  bool isotonic = true;
  bool streams = true;
  bool ties = true;
  std::string huge;
  std::int64_t trees = 1000;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--cases") cases = argv[i + 1];
    if (option == "--only") only = argv[i + 1];
    if (option == "--batches") batches.end = std::atoll(argv[i + 1]);
    if (option == "--first") batches.first = std::atoll(argv[i + 1]);
    if (option == "--step") batches.step = std::max(1LL, std::atoll(argv[i + 1]));
    if (option == "--longest") longest = std::atoll(argv[i + 1]);
    if (option == "--huge") huge = argv[i + 1];
    if (option == "--trees") trees = std::atoll(argv[i + 1]);
    if (option == "--isotonic") isotonic = std::string(argv[i + 1]) == "1";
    if (option == "--fits") fits = std::string(argv[i + 1]) == "1";
    if (option == "--ties") ties = std::string(argv[i + 1]) == "1";
    if (option == "--streams") streams = std::string(argv[i + 1]) == "1";
    if (option == "--verbose") verbose = std::string(argv[i + 1]) == "1";
    if (option == "--seed") seed = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (huge == "only") {
    const int wrong = check_huge_rows();
    std::printf(wrong == 0 ? "PASS: huge rows\n" : "FAIL: %d of the huge rows\n", wrong);
    return wrong == 0 ? 0 : 1;
  }
  if (fits && isotonic) {
    if (!cases.empty()) run_cases(cases);
    run_refused();
    if (ties) failures += check_ties(batches, seed, streams);
    if (streams) failures += check_streams();
    run_batches(batches, seed);
    run_long_rows(longest, only);
  }
  if (isotonic) {
    failures += check_refused_gradients() + check_gradients_of_far_values() + check_hidden_ties(longest);
    if (streams) failures += check_gradient_streams();
    failures += check_gradient_batches(batches, seed) + check_gradients_of_long_rows(longest, seed);
    if (huge == "1") failures += check_huge_rows();
  }
  failures += check_random_trees({trees}, seed) + check_refused_gradients_of_trees() +
              check_device_subtraction(seed) +
              check_many_rows(std::min<std::int64_t>(longest, 300000), seed) + check_wide_bins(seed);
  std::printf(failures == 0 ? "PASS: GPU and CPU agree bit by bit\n" : "FAIL: %d disagreements\n", failures);
  return failures == 0 ? 0 : 1;
}
