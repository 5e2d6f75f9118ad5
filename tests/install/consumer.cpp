// What a user's program does with the library: fit, compare, and leave with 1 when anything differs.
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "isofold/isofold.hpp"

namespace {

// Compared as bits: the consumer may have been compiled or linked with fast-math, which flushes subnormals.
bool same(const std::vector<double>& fit, const std::vector<std::uint64_t>& expected) {
  for (std::size_t i = 0; i < fit.size(); ++i) {
    if (std::bit_cast<std::uint64_t>(fit[i]) != expected[i]) {
      std::printf("element %zu is %016llx, expected %016llx\n", i,
                  static_cast<unsigned long long>(std::bit_cast<std::uint64_t>(fit[i])),
                  static_cast<unsigned long long>(expected[i]));
      return false;
    }
  }
  return true;
}

bool check(const std::vector<double>& values, const std::vector<std::uint64_t>& expected,
           const std::vector<std::uint8_t>& expected_starts) {
  isofold::IsotonicProblem problem;
  problem.values = values.data();
  problem.rows = isofold::Rows::single(static_cast<std::int64_t>(values.size()));
  std::vector<double> fit(values.size());
  std::vector<std::uint8_t> starts(values.size());
  isofold::IsotonicFit out;
  out.fit = fit.data();
  out.block_starts = starts.data();
  for (const int threads : {1, 2}) {
    isofold::Executor executor;
    executor.threads = threads;
    const isofold::Status status = isofold::isotonic_regression(problem, out, executor);
    if (!status.ok()) {
      std::printf("%s\n", status.message.c_str());
      return false;
    }
    if (!same(fit, expected) || starts != expected_starts) {
      return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  const bool plain =
      check({3, 1, 2, 5, 4}, {bits(2), bits(2), bits(2), bits(4.5), bits(4.5)}, {1, 0, 0, 1, 0});
  // Subnormals, in units of the smallest: 3, 1 -> 2, 2.
  const bool subnormal = check(
      {std::bit_cast<double>(std::uint64_t{3}), std::bit_cast<double>(std::uint64_t{1})}, {2, 2}, {1, 0});
  std::printf("plain %s, subnormal %s\n", plain ? "right" : "WRONG", subnormal ? "right" : "WRONG");
  return plain && subnormal ? 0 : 1;
}
