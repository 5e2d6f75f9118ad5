// Long rows of short blocks, whose means the CPU finds side by side: every bit as the reference executor has
// it.
#include <gtest/gtest.h>

#include "support/fit_call.hpp"
#include "support/random.hpp"

namespace isofold_test {
namespace {

// Blocks of 1 to `longest` elements, the values of each falling by a few `unit`s and rising from block to
// block: means lie at, and next to, midpoints of neighbouring numbers.
FitCall row_of_blocks(Random& random, DataType type, double unit, std::int64_t longest, std::int64_t length) {
  FitCall call;
  call.values_type = type;
  call.increasing = random.chance(0.5);
  const double sign = random.chance(0.5) ? 1.0 : -1.0;
  double level = sign > 0 ? 1.0 : -1.0;
  while (static_cast<std::int64_t>(call.values.size()) < length) {
    const auto count = random.between(1, longest);
    double y = level;
    for (std::int64_t i = 0; i < count; ++i) {
      call.values.push_back(call.increasing ? y : -y);
      y -= unit * static_cast<double>(random.between(i % 2, 3));
    }
    level += unit * static_cast<double>(random.between(1, 8));
  }
  return call;
}

TEST(ShortBlocks, AgreeWithTheReferenceExecutor) {
  Random random(2201);
  for (const auto& [type, unit] :
       {std::pair{DataType::float64, 0x1p-52}, std::pair{DataType::float32, 0x1p-23},
        std::pair{DataType::float16, 0x1p-10}}) {
    for (const std::int64_t longest : {2, 5, 8, 9, 16, 17, 40}) {
      for (const std::int64_t chunk_size : {0, 64, 512}) {
        for (int repeat = 0; repeat < 6; ++repeat) {
          // Steps of one unit make sums exact, and steps that are no multiple of it leave them open.
          const bool open = type == DataType::float64 && repeat % 3 == 2;
          FitCall call = row_of_blocks(random, type, unit, longest, random.between(1, 2500));
          if (open) {
            for (double& y : call.values) y = y * 1e20 + random.unit() * 1e-20;
            call.values.front() = call.increasing ? -0x1p-100 : 0x1p-100;
          }
          if (repeat % 2 == 1) {
            call.lower_bound = -1.0;
            call.upper_bound = 1.0 + 100 * unit;
          }
          call.executor.chunk_size = chunk_size;
          const FitAnswer fit = run_fit(call);
          ASSERT_TRUE(fit.status.ok()) << fit.status.message;
          call.executor.backend = isofold::Backend::reference;
          const FitAnswer reference = run_fit(call);
          ASSERT_EQ(fit.starts, reference.starts) << "blocks of up to " << longest;
          ASSERT_EQ(fit.bits, reference.bits) << "blocks of up to " << longest;
        }
      }
    }
  }
}

}  // namespace
}  // namespace isofold_test
