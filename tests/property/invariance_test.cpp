// What must not change a bit: threads, chunk size, siblings, alignment, what lies around the arrays.
#include <gtest/gtest.h>

#include "support/long_row.hpp"

namespace isofold_test {
namespace {

constexpr std::int64_t kChunkSizes[] = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};

struct Answers {
  FitAnswer fit;
  GradientAnswer gradient;
};

Answers run(const LongRow& row) {
  Answers answers;
  answers.fit = run_fit(row.call);
  EXPECT_TRUE(answers.fit.status.ok()) << answers.fit.status.message;
  answers.gradient = run_gradient(row.call, answers.fit.starts, row.gradient);
  EXPECT_TRUE(answers.gradient.status.ok()) << answers.gradient.status.message;
  return answers;
}

void expect_same(const Answers& got, const Answers& expected, const std::string& what) {
  EXPECT_TRUE(got.fit.bits == expected.fit.bits) << what << ": fit";
  EXPECT_TRUE(got.fit.starts == expected.fit.starts) << what << ": block starts";
  EXPECT_TRUE(got.gradient.values == expected.gradient.values) << what << ": gradient in the values";
  EXPECT_TRUE(got.gradient.weights == expected.gradient.weights) << what << ": gradient in the weights";
  EXPECT_TRUE(got.gradient.block_weights == expected.gradient.block_weights) << what << ": block weights";
}

// A row of each family, types and weights in turn.
std::vector<LongRow> rows_of_every_family(std::int64_t length, std::uint64_t seed) {
  std::vector<LongRow> rows;
  constexpr DataType kTypes[] = {DataType::float64, DataType::float32};
  constexpr Weighting kWeightings[] = {Weighting::none, Weighting::any, Weighting::extreme};
  for (const Family& family : value_families()) {
    const auto k = rows.size();
    rows.push_back(
        make_long_row(family, length, {kTypes[k % 2], kWeightings[k % 3], k % 4 < 2, true, seed + k}));
  }
  return rows;
}

TEST(Invariance, ThreadsAndChunkSizes) {
  for (LongRow& row : rows_of_every_family(33001, 400)) {
    row.call.executor.threads = 1;
    const Answers base = run(row);
    for (const std::int64_t chunk_size : kChunkSizes) {
      for (const int threads : {1, 2, 7}) {
        // Every chunk size with one other number of threads, the default with all.
        if (chunk_size != 4096 && threads != 1 && (chunk_size / 32 % 7 < 3) != (threads == 2)) continue;
        row.call.executor.chunk_size = chunk_size;
        row.call.executor.threads = threads;
        expect_same(
            run(row), base,
            row.name + ", chunk size " + std::to_string(chunk_size) + ", threads " + std::to_string(threads));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(Invariance, RowsLongEnoughForSevenThreads) {
  for (const char* name : {"ramp-noise", "rising", "long-sawtooth", "near-ties"}) {
    LongRow row =
        make_long_row(*find_family(name), 700001, {DataType::float64, Weighting::none, true, true, 410});
    row.call.executor.threads = 1;
    const Answers base = run(row);
    for (const int threads : {2, 7}) {
      for (const std::int64_t chunk_size : {0, 32, 1024, 65536}) {
        row.call.executor.threads = threads;
        row.call.executor.chunk_size = chunk_size;
        expect_same(run(row), base, row.name + ", chunk size " + std::to_string(chunk_size));
      }
    }
  }
}

TEST(Invariance, Alignment) {
  for (LongRow& row : rows_of_every_family(1037, 420)) {
    row.call.executor.chunk_size = 128;
    const Answers base = run(row);
    for (std::int64_t offset = 0; offset < 16; ++offset) {
      row.call.layout = {offset, offset % 3 * 8, offset % 2 == 0};
      expect_same(run(row), base, row.name + ", offset " + std::to_string(offset));
    }
  }
}

// The same rows, in one ragged call with others between them.
TEST(Invariance, Siblings) {
  for (const std::int64_t chunk_size : {32, 1024}) {
    for (const int threads : {1, 2, 7}) {
      std::vector<LongRow> rows;
      LongRow batch;
      batch.call.offsets = {0};
      Random random(430);
      for (int k = 0; k < 120; ++k) {
        const auto& families = value_families();
        const Family& family = families[static_cast<std::size_t>(k) % families.size()];
        const std::int64_t length = k % 10 == 0 ? 20000 : random.below(400);
        if (length == 0) {
          batch.call.offsets.push_back(batch.call.offsets.back());
          continue;
        }
        rows.push_back(make_long_row(
            family, length, {DataType::float32, Weighting::any, true, true, static_cast<std::uint64_t>(k)}));
        const LongRow& row = rows.back();
        const auto append = [](Doubles& to, const Doubles& from) {
          to.insert(to.end(), from.begin(), from.end());
        };
        append(batch.call.values, row.call.values);
        append(batch.call.weights, row.call.weights);
        append(batch.gradient.gradient, row.gradient.gradient);
        batch.call.offsets.push_back(static_cast<std::int64_t>(batch.call.values.size()));
      }
      batch.call.values_type = batch.call.weights_type = DataType::float32;
      batch.call.executor.chunk_size = chunk_size;
      batch.call.executor.threads = threads;
      const Answers together = run(batch);

      Answers joined;
      const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
      for (const LongRow& row : rows) {
        const Answers alone = run(row);
        append(joined.fit.bits, alone.fit.bits);
        append(joined.fit.starts, alone.fit.starts);
        append(joined.gradient.values, alone.gradient.values);
        append(joined.gradient.weights, alone.gradient.weights);
        append(joined.gradient.block_weights, alone.gradient.block_weights);
      }
      expect_same(together, joined,
                  "chunk size " + std::to_string(chunk_size) + ", threads " + std::to_string(threads));
    }
  }
}

// Theorems of rounding once: the fit never steps down, stays between the extremes, is its own fit.
TEST(Invariance, FitsAreMonotoneAndIdempotent) {
  for (LongRow& row : rows_of_every_family(5003, 440)) {
    const Answers answers = run(row);
    const DataType type = row.call.values_type;
    const Doubles fit = answers.fit.fit(type);
    const auto [low, high] = std::minmax_element(row.call.values.begin(), row.call.values.end());
    for (std::size_t i = 0; i < fit.size(); ++i) {
      ASSERT_GE(fit[i], *low) << row.name;
      ASSERT_LE(fit[i], *high) << row.name;
      const double last = fit[i == 0 ? 0 : i - 1];
      ASSERT_TRUE(row.call.increasing ? last <= fit[i] : last >= fit[i]) << row.name << ", element " << i;
    }
    row.call.values = fit;
    EXPECT_TRUE(run_fit(row.call).bits == answers.fit.bits) << row.name;
  }
}

// A non-increasing fit is the non-decreasing fit of the negated values, negated; zeros are positive either
// way.
TEST(Invariance, DirectionsMirror) {
  for (LongRow& row : rows_of_every_family(3001, 450)) {
    const Answers answers = run(row);
    row.call.increasing = !row.call.increasing;
    for (double& y : row.call.values) y = -y;
    const FitAnswer mirrored = run_fit(row.call);
    EXPECT_TRUE(mirrored.starts == answers.fit.starts) << row.name;
    for (std::size_t i = 0; i < mirrored.bits.size(); ++i) {
      const double z = decode(row.call.values_type, mirrored.bits[i]);
      ASSERT_EQ(answers.fit.bits[i], encode(row.call.values_type, -z)) << row.name << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace isofold_test
