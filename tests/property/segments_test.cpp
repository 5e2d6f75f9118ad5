// A segment's values depend on its own elements alone: not on siblings, order, offsets, alignment, threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

#include "isofold/isofold.hpp"
#include "support/guarded_array.hpp"
#include "support/segment_batch.hpp"
#include "support/segment_oracle.hpp"

namespace isofold_test {
namespace {

using isofold::Rows;
using isofold::SegmentValue;

struct Values {
  std::vector<std::uint64_t> sums;
  std::vector<std::uint64_t> dots;
  std::vector<std::uint64_t> norms;
  bool operator==(const Values&) const = default;
};

// All three, of segments laid out `shift` elements past an aligned address between poisoned guards.
Values reduced(const SegmentBatch& batch, const Rows& rows, const Layout& layout, int threads = 1) {
  const GuardedArray a(batch.type, batch.a, layout);
  const GuardedArray b(batch.type, batch.b, layout);
  std::vector<GuardedArray> out;
  for (int v = 0; v < 3; ++v) out.emplace_back(batch.type, rows.count, layout);
  const isofold::SegmentReduction reductions[] = {
      {SegmentValue::sum, a.input(), {}, out[0].output()},
      {SegmentValue::dot, a.input(), b.input(), out[1].output()},
      {SegmentValue::norm, a.input(), {}, out[2].output()},
  };
  isofold::Executor executor;
  executor.threads = threads;
  const isofold::Status status = isofold::segment_reductions(reductions, 3, rows, executor);
  EXPECT_TRUE(status.ok()) << status.message;
  Values values;
  std::vector<std::uint64_t>* into[] = {&values.sums, &values.dots, &values.norms};
  for (int v = 0; v < 3; ++v) {
    EXPECT_TRUE(out[static_cast<std::size_t>(v)].guards_intact());
    for (std::int64_t s = 0; s < rows.count; ++s) {
      into[v]->push_back(out[static_cast<std::size_t>(v)].bits(s));
    }
  }
  return values;
}

Rows ragged(const SegmentBatch& batch) {
  return Rows::ragged(batch.offsets.data(), static_cast<std::int64_t>(batch.offsets.size()) - 1);
}

SegmentBatch one_of(const SegmentBatch& batch, std::size_t s) {
  SegmentBatch one;
  one.type = batch.type;
  one.a.assign(batch.a.begin() + batch.offsets[s], batch.a.begin() + batch.offsets[s + 1]);
  one.b.assign(batch.b.begin() + batch.offsets[s], batch.b.begin() + batch.offsets[s + 1]);
  one.offsets.push_back(static_cast<std::int64_t>(one.a.size()));
  return one;
}

void append(SegmentBatch& batch, const SegmentBatch& one) {
  batch.a.insert(batch.a.end(), one.a.begin(), one.a.end());
  batch.b.insert(batch.b.end(), one.b.begin(), one.b.end());
  batch.offsets.push_back(static_cast<std::int64_t>(batch.a.size()));
}

class SegmentsOfType : public testing::TestWithParam<DataType> {};

TEST_P(SegmentsOfType, BatchedAreAsAlone) {
  Random random(11);
  for (const std::int64_t count : {1, 2, 3, 64, 4096}) {
    const SegmentBatch batch = random_segments(random, GetParam(), count, count == 4096 ? 60 : 3000);
    const Values together = reduced(batch, ragged(batch), {random.between(0, 7), 16, true}, 2);
    const std::size_t step = count == 4096 ? 37 : 1;
    for (std::size_t s = 0; s < static_cast<std::size_t>(count); s += step) {
      const SegmentBatch one = one_of(batch, s);
      const Values alone = reduced(one, ragged(one), {random.between(0, 7), 8, false});
      EXPECT_EQ(alone.sums[0], together.sums[s]);
      EXPECT_EQ(alone.dots[0], together.dots[s]);
      EXPECT_EQ(alone.norms[0], together.norms[s]);
    }
  }
}

TEST_P(SegmentsOfType, MayComeInAnyOrderAmongNaNs) {
  Random random(12);
  const SegmentBatch batch = random_segments(random, GetParam(), 50, 2000);
  const Values expected = reduced(batch, ragged(batch), {});
  std::vector<std::size_t> order(50);
  std::iota(order.begin(), order.end(), 0U);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[random.below(static_cast<std::int64_t>(i))]);
  SegmentBatch nans;
  nans.a.assign(77, NAN);
  nans.b.assign(77, NAN);
  SegmentBatch mixed;
  mixed.type = batch.type;
  for (const std::size_t s : order) {
    append(mixed, one_of(batch, s));
    append(mixed, nans);
  }
  const Values found = reduced(mixed, ragged(mixed), {3, 16, true});
  for (std::size_t k = 0; k < order.size(); ++k) {
    EXPECT_EQ(found.sums[2 * k], expected.sums[order[k]]);
    EXPECT_EQ(found.dots[2 * k], expected.dots[order[k]]);
    EXPECT_EQ(found.norms[2 * k], expected.norms[order[k]]);
    EXPECT_EQ(found.sums[2 * k + 1], canonical_nan(batch.type));
  }
}

// CCCL issue 5505: sums that differed by a bit when only the segment's start moved.
TEST_P(SegmentsOfType, MayStartAnywhere) {
  Random random(13);
  SegmentBatch one;
  one.type = GetParam();
  for (int i = 0; i < 1500; ++i) {
    one.a.push_back(decode(one.type, encode(one.type, random.normal())));
    one.b.push_back(decode(one.type, encode(one.type, random.normal() * 1e3)));
  }
  one.offsets.push_back(1500);
  const Values expected = reduced(one, ragged(one), {});
  for (std::int64_t start = 1; start < 128; ++start) {
    SegmentBatch moved;
    moved.type = one.type;
    moved.a.assign(static_cast<std::size_t>(start), 1.0);
    moved.b = moved.a;
    moved.offsets.push_back(start);
    append(moved, one);
    const Values found = reduced(moved, ragged(moved), {start % 5, 8, true});
    EXPECT_EQ(found.sums[1], expected.sums[0]) << start;
    EXPECT_EQ(found.dots[1], expected.dots[0]) << start;
    EXPECT_EQ(found.norms[1], expected.norms[0]) << start;
  }
}

// Over many pieces of work, and with sums that cancel, so that exact digits come from several threads.
TEST_P(SegmentsOfType, LongOnesAreExactOnAnyNumberOfThreads) {
  Random random(14);
  SegmentOracle oracle;
  for (const bool cancels : {false, true}) {
    SegmentBatch batch;
    batch.type = GetParam();
    for (const std::int64_t length : {5LL, 32763LL, 0LL, 32768LL, 100001LL, 1LL, 65535LL, 300000LL}) {
      SegmentBatch one;
      for (std::int64_t i = 0; i < length; ++i) {
        one.a.push_back(decode(batch.type, encode(batch.type, random.normal())));
        one.b.push_back(decode(batch.type, encode(batch.type, random.normal())));
      }
      for (std::int64_t i = 0; cancels && i < length / 2; ++i) {
        const auto k = static_cast<std::size_t>(i);
        one.a[one.a.size() - 1 - k] = -one.a[k];
        one.b[one.b.size() - 1 - k] = one.b[k];
      }
      append(batch, one);
    }
    const Values one_thread = reduced(batch, ragged(batch), {1, 8, true}, 1);
    EXPECT_TRUE(one_thread == reduced(batch, ragged(batch), {0, 8, true}, 3));
    for (std::size_t s = 0; s + 1 < batch.offsets.size(); ++s) {
      const auto exact = [&](SegmentValue value) {
        return oracle.reduce(value, batch.a, batch.b, batch.offsets[s], batch.offsets[s + 1], batch.type);
      };
      EXPECT_EQ(one_thread.sums[s], exact(SegmentValue::sum)) << s;
      EXPECT_EQ(one_thread.dots[s], exact(SegmentValue::dot)) << s;
      EXPECT_EQ(one_thread.norms[s], exact(SegmentValue::norm)) << s;
    }
  }
}

TEST_P(SegmentsOfType, ARectangleIsRagged) {
  Random random(15);
  for (const std::int64_t length : {1, 3, 16, 1000, 40000}) {
    SegmentBatch batch;
    batch.type = GetParam();
    for (std::int64_t s = 0; s < 5; ++s) {
      SegmentBatch one;
      for (std::int64_t i = 0; i < length; ++i) {
        one.a.push_back(decode(batch.type, encode(batch.type, random.normal())));
        one.b.push_back(decode(batch.type, encode(batch.type, random.normal())));
      }
      append(batch, one);
    }
    EXPECT_TRUE(reduced(batch, Rows::rectangle(5, length), {}) == reduced(batch, ragged(batch), {}));
  }
}

// Warp issue 1608: what lies behind the last offset belongs to no segment.
TEST_P(SegmentsOfType, TheTailIsNotRead) {
  SegmentBatch batch;
  batch.type = GetParam();
  batch.a = {1, 2, 3, NAN};
  batch.b = {1, 1, 1, NAN};
  batch.offsets = {0, 1, 3};
  const Values found = reduced(batch, ragged(batch), {});
  EXPECT_EQ(decode(batch.type, found.sums[1]), 5);
  EXPECT_EQ(decode(batch.type, found.sums[0]), 1);
}

INSTANTIATE_TEST_SUITE_P(Types, SegmentsOfType,
                         testing::Values(DataType::float16, DataType::bfloat16, DataType::float32,
                                         DataType::float64),
                         [](const auto& p) { return name_of(p.param); });

}  // namespace
}  // namespace isofold_test
