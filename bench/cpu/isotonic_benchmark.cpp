// Times of the fit and of its gradient through the public interface. The axes are arguments:
//
//   fit<double>/family:0/rows:1/length:1000000/threads:1/real_time
//
// with the family's name as the label; an item of items_per_second is an element. `copy` is the yardstick, a
// memcpy of the same values. Pick with --benchmark_filter, for example
// 'fit<double>/family:[0-3]/rows:1/length:1000000/'.
#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "families.hpp"
#include "isofold/isofold.hpp"

namespace isofold_bench {
namespace {

enum Axis : int { kFamily, kRows, kLength, kThreads };

// Rows, their fit, and a gradient to send back through it.
template <class T>
struct Case {
  Batch<T> batch;
  isofold::IsotonicProblem problem;
  std::vector<T> fit;
  std::vector<std::uint8_t> block_starts;
  std::vector<T> gradient;
  std::vector<T> gradient_values;
  std::vector<T> gradient_weights;
};

// The case of a benchmark's arguments. The last one drawn is kept: a benchmark is entered several times, and
// its neighbours differ in what is done and in the number of threads only.
template <class T>
Case<T>& case_of(const benchmark::State& state) {
  static Case<T> kept;
  static std::vector<std::int64_t> kept_axes;
  std::vector<std::int64_t> axes = {state.range(kFamily), state.range(kRows), state.range(kLength)};
  if (axes == kept_axes) return kept;
  kept = {};
  kept.batch = make_batch<T>(kFamilies[static_cast<std::size_t>(axes[0])].family, axes[1], axes[2]);
  kept.problem.values = kept.batch.values.data();
  if (!kept.batch.weights.empty()) kept.problem.weights = kept.batch.weights.data();
  kept.problem.rows = isofold::Rows::rectangle(axes[1], axes[2]);
  const std::size_t total = kept.batch.values.size();
  kept.fit.resize(total);
  kept.block_starts.resize(total);
  kept.gradient = make_batch<T>(Family::noise, axes[1], axes[2]).values;
  kept.gradient_values.resize(total);
  if (!kept.batch.weights.empty()) kept.gradient_weights.resize(total);
  kept_axes = std::move(axes);
  return kept;
}

isofold::Executor executor_of(const benchmark::State& state) {
  isofold::Executor executor;
  executor.threads = static_cast<int>(state.range(kThreads));
  return executor;
}

template <class T>
isofold::Status run_fit(Case<T>& data, const isofold::Executor& executor) {
  return isofold::isotonic_regression(data.problem, {data.fit.data(), data.block_starts.data()}, executor);
}

template <class T>
isofold::Status run_gradient(Case<T>& data, const isofold::Executor& executor) {
  isofold::IsotonicGradient out{data.gradient_values.data(), {}};
  if (!data.gradient_weights.empty()) out.weights = data.gradient_weights.data();
  return isofold::isotonic_gradient(data.problem, data.block_starts.data(), data.gradient.data(), out,
                                    executor);
}

void label(benchmark::State& state) {
  const auto elements = static_cast<double>(state.range(kRows) * state.range(kLength));
  state.SetLabel(std::string(kFamilies[static_cast<std::size_t>(state.range(kFamily))].name));
  state.SetItemsProcessed(state.iterations() * state.range(kRows) * state.range(kLength));
  // Printed with its SI prefix: '1.5n' is 1.5 nanoseconds an element.
  state.counters["seconds_per_element"] = benchmark::Counter(
      elements, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

template <class T>
void fit(benchmark::State& state) {
  Case<T>& data = case_of<T>(state);
  for (auto _ : state) {
    if (const isofold::Status status = run_fit(data, executor_of(state)); !status.ok()) {
      state.SkipWithError(status.message.c_str());
      break;
    }
    benchmark::ClobberMemory();
  }
  label(state);
}

template <class T>
void gradient(benchmark::State& state) {
  Case<T>& data = case_of<T>(state);
  isofold::Status status = run_fit(data, executor_of(state));
  for (auto _ : state) {
    if (status.ok()) status = run_gradient(data, executor_of(state));
    if (!status.ok()) {
      state.SkipWithError(status.message.c_str());
      break;
    }
    benchmark::ClobberMemory();
  }
  label(state);
}

template <class T>
void copy(benchmark::State& state) {
  Case<T>& data = case_of<T>(state);
  for (auto _ : state) {
    std::memcpy(data.fit.data(), data.batch.values.data(), data.fit.size() * sizeof(T));
    benchmark::ClobberMemory();
  }
  label(state);
}

constexpr std::int64_t kShapes[][2] = {{1, 1'000},      {1, 10'000},     {1, 100'000},  {1, 1'000'000},
                                       {1, 10'000'000}, {1'000'000, 16}, {100'000, 100}};
constexpr std::int64_t kThreadCounts[] = {1, 2};

void add(const char* name, void (*function)(benchmark::State&), std::vector<std::int64_t> arguments) {
  benchmark::RegisterBenchmark(name, function)
      ->ArgNames({"family", "rows", "length", "threads"})
      ->Args(arguments)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
}

template <class T>
void add_all(const std::string& type) {
  for (std::int64_t family = 0; family < static_cast<std::int64_t>(kFamilies.size()); ++family) {
    for (const auto& [rows, length] : kShapes) {
      if (family == 0) add(("copy<" + type + ">").c_str(), copy<T>, {family, rows, length, 1});
      for (const std::int64_t threads : kThreadCounts) {
        add(("fit<" + type + ">").c_str(), fit<T>, {family, rows, length, threads});
      }
      for (const std::int64_t threads : kThreadCounts) {
        add(("gradient<" + type + ">").c_str(), gradient<T>, {family, rows, length, threads});
      }
    }
  }
}

}  // namespace
}  // namespace isofold_bench

int main(int count, char** arguments) {
  // Hundreds of benchmarks: a tenth of a second each, unless asked otherwise.
  std::string shorter = "--benchmark_min_time=0.1";
  std::vector<char*> all(arguments, arguments + count);
  all.insert(all.begin() + 1, shorter.data());
  count = static_cast<int>(all.size());
  benchmark::Initialize(&count, all.data());
  if (benchmark::ReportUnrecognizedArguments(count, all.data())) return 1;
  isofold_bench::add_all<double>("double");
  isofold_bench::add_all<float>("float");
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
