// Which tool decides what: the counters of the solver on data of known kinds.
#include <gtest/gtest.h>

#include "cpu/counters.hpp"
#include "support/long_row.hpp"

namespace isofold_test {
namespace {

using isofold::cpu::Count;
using isofold::cpu::counters;

static_assert(isofold::cpu::kCounting, "the white-box tests are built with ISOFOLD_COUNTERS");

constexpr std::int64_t kLength = 200000;
constexpr std::int64_t kChunk = 1024;
constexpr std::int64_t kChunks = (kLength + kChunk - 1) / kChunk;

class CountersOf : public testing::Test {
 protected:
  void run(const char* family, const LongRowOptions& options) {
    LongRow row = make_long_row(*find_family(family), kLength, options);
    row.call.executor.chunk_size = kChunk;
    row.call.executor.threads = 2;
    counters().reset();
    ASSERT_TRUE(run_fit(row.call).status.ok());
  }
  static std::int64_t count(Count what) { return counters()[what]; }
  static std::int64_t long_accumulator_decisions() {
    return count(Count::exact_chunks) + count(Count::exact_merge_turns) + count(Count::exact_means);
  }
};

TEST_F(CountersOf, EveryRow) {
  for (const char* family : {"ramp-noise", "rising", "falling", "sawtooth", "labels", "near-ties"}) {
    run(family, {DataType::float64, Weighting::none, true, false, 820});
    EXPECT_EQ(count(Count::merges), kChunks - 1) << family;
    EXPECT_GE(count(Count::walk_steps), kChunks - 1) << family;
    EXPECT_GE(count(Count::root_segments), 1) << family;
    EXPECT_LE(count(Count::root_segments), kChunks) << family;
    EXPECT_LE(count(Count::searches), count(Count::merges)) << family;
    EXPECT_EQ(count(Count::searches) > 0, count(Count::search_turns) > 0) << family;
  }
}

TEST_F(CountersOf, IncreasingKeepsASegmentInEveryChunk) {
  run("rising", {DataType::float64, Weighting::none, true, false, 821});
  EXPECT_EQ(count(Count::root_segments), kChunks);
  EXPECT_EQ(count(Count::searches), 0);
  EXPECT_EQ(long_accumulator_decisions(), 0);
}

TEST_F(CountersOf, FallingKeepsOneSegment) {
  run("falling", {DataType::float64, Weighting::none, true, false, 822});
  EXPECT_EQ(count(Count::root_segments), 1);
}

TEST_F(CountersOf, CliffsAreSearchedNotWalked) {
  LongRow row;
  for (std::int64_t i = 0; i < kLength; ++i) row.call.values.push_back(static_cast<double>(i));
  row.call.values.back() = -1e15;
  row.call.executor.chunk_size = kChunk;
  counters().reset();
  ASSERT_TRUE(run_fit(row.call).status.ok());
  // Where the right child is the last chunk's two points: the merges at chunks 194, 192, 128 and 0.
  EXPECT_EQ(count(Count::searches), 4);
  EXPECT_LE(count(Count::walk_steps), 64 * (kChunks - 1));
  EXPECT_EQ(count(Count::root_segments), 1);
}

TEST_F(CountersOf, LabelsAndFewLevelsAreCertifiedAtOnce) {
  for (const char* family : {"labels", "few-levels", "integer-ramp"}) {
    for (const Weighting weighting : {Weighting::none, Weighting::ones_to_nine}) {
      run(family, {DataType::float32, weighting, true, false, 823});
      EXPECT_EQ(count(Count::precise_turns), 0) << family;
      EXPECT_EQ(long_accumulator_decisions(), 0) << family;
    }
  }
}

TEST_F(CountersOf, ConstantsNeedNoLongAccumulators) {
  LongRow row;
  for (const DataType type : {DataType::float32, DataType::float64}) {
    row.call.values_type = type;
    row.call.values.assign(kLength, quantize(type, 0.1));
    row.call.executor.chunk_size = kChunk;
    counters().reset();
    ASSERT_TRUE(run_fit(row.call).status.ok());
    EXPECT_EQ(long_accumulator_decisions(), 0) << name_of(type);
  }
}

TEST_F(CountersOf, DecimalsNeedPreciseTurnsAndNoLongAccumulators) {
  for (const char* family : {"decimals", "one-decimal-noise", "rates"}) {
    run(family, {DataType::float64, Weighting::none, true, false, 824});
    EXPECT_EQ(count(Count::exact_chunks), 0) << family;
    EXPECT_EQ(long_accumulator_decisions(), 0) << family;
  }
  run("decimals", {DataType::float64, Weighting::none, true, false, 825});
  EXPECT_GT(count(Count::precise_turns), 0) << "a fifth of these turns is undecided in doubles";
}

TEST_F(CountersOf, NoiseIsDecidedInDoubles) {
  for (const DataType type : {DataType::float32, DataType::float64}) {
    for (const Weighting weighting : {Weighting::none, Weighting::extreme}) {
      run("ramp-noise", {type, weighting, true, false, 826});
      EXPECT_LE(count(Count::precise_turns), kLength / 100) << name_of(type);
      EXPECT_EQ(long_accumulator_decisions(), 0) << name_of(type);
    }
  }
}

TEST_F(CountersOf, WideExponentsReachTheLongAccumulators) {
  run("wide-exponents", {DataType::float64, Weighting::any, true, false, 827});
  EXPECT_GT(long_accumulator_decisions(), 0);
}

}  // namespace
}  // namespace isofold_test
