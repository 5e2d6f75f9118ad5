#include "emulator/fit_on_both.hpp"

#include <cstring>

#include "cuda/team.cuh"
#include "emulator/simt.hpp"

namespace isofold_test {

Fit fit_on_cpu(const FitCase& row, DataType type) {
  Fit fit{{type, row.values.count}, std::vector<std::uint8_t>(static_cast<std::size_t>(row.values.count))};
  isofold::Executor executor;
  executor.threads = 1;
  const isofold::Status status =
      isofold::isotonic_regression(row.problem(), {fit.values.output(), fit.starts.data()}, executor);
  EXPECT_TRUE(status.ok()) << row.name << ": " << status.message;
  return fit;
}

Fit fit_on_device(const FitCase& row, DataType type) {
  const std::int64_t count = row.values.count;
  const DeviceFloats values(row.values, row.shift);
  const DeviceFloats weights(row.weights, row.shift);
  const DeviceArray<std::int64_t> offsets(row.offsets);
  const DeviceFloats fit(type, count, row.shift);
  const DeviceArray<std::uint8_t> starts(count, row.shift);
  isofold::IsotonicProblem problem = row.problem();
  problem.values = values.view();
  if (row.weights.count > 0) problem.weights = weights.view();
  if (!row.offsets.empty()) {
    problem.rows = isofold::Rows::ragged_on_device(offsets.data(),
                                                   static_cast<std::int64_t>(row.offsets.size()) - 1, count);
  }
  isofold::Executor executor;
  executor.backend = isofold::Backend::cuda;
  const isofold::Status status =
      isofold::isotonic_regression(problem, {fit.output(), starts.data()}, executor);
  EXPECT_TRUE(status.ok()) << row.name << ": " << status.message;
  EXPECT_TRUE(fit.margins_intact() && starts.margins_intact()) << row.name << ": wrote outside its outputs";
  EXPECT_TRUE(values.host().bytes == row.values.bytes && weights.host().bytes == row.weights.bytes &&
              offsets.host() == row.offsets && values.margins_intact())
      << row.name << ": wrote its inputs";
  return {fit.host(), starts.host()};
}

testing::AssertionResult same_fit(const FitCase& row, const Fit& found, const Fit& expected) {
  std::int64_t wrong = 0;
  std::int64_t first = -1;
  const std::size_t width = expected.values.width();
  for (std::int64_t i = 0; i < expected.values.count; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (std::memcmp(found.values.bytes.data() + k * width, expected.values.bytes.data() + k * width, width) ==
            0 &&
        found.starts[k] == expected.starts[k]) {
      continue;
    }
    if (wrong++ == 0) first = i;
  }
  if (wrong == 0) return testing::AssertionSuccess();
  const auto k = static_cast<std::size_t>(first);
  return testing::AssertionFailure() << row.name << ": " << wrong << " of " << expected.values.count
                                     << " differ, first at " << first << ": " << std::hexfloat
                                     << found.values[first] << ", starts " << int{found.starts[k]} << ", not "
                                     << expected.values[first] << ", starts " << int{expected.starts[k]};
}

testing::AssertionResult fits_agree(const FitCase& row) {
  return same_fit(row, fit_on_device(row, row.values.type), fit_on_cpu(row, row.values.type));
}

void OnDevice::SetUpTestSuite() {
  static const bool once = [] {
    simt::poison_for_blocks(isofold::cuda::dynamic_shared(), std::size_t{1} << 18);
    return true;
  }();
  static_cast<void>(once);
}

void OnDevice::TearDown() {
  simt::shuffle_blocks(0);
  simt::shuffle_threads(0);
}

}  // namespace isofold_test
