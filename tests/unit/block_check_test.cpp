// The judge of rows too long to fit twice, on rows that the CPU executor fits: right answers pass, and every
// kind of wrong one is found, wherever the segments' borders fall.
#include "support/block_check.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "isofold/isofold.hpp"
#include "support/grid_rows.hpp"

namespace {

using isofold_test::BlockCheck;
using isofold_test::BlockReport;
using isofold_test::GridRows;
using isofold_test::rounded_grid_mean;

struct Answer {
  std::vector<float> fit;
  std::vector<std::uint8_t> starts;
};

// Rows of 0 to 400 elements, one of 30,000, and 20 single elements.
const GridRows& rows() {
  static const GridRows made = [] {
    std::vector<std::int64_t> offsets{0};
    for (int r = 0; r < 200; ++r) {
      const int length = r == 100 ? 30000 : (r > 180 ? 1 : r * 7919 % 401);
      offsets.push_back(offsets.back() + length);
    }
    return GridRows(offsets, 11);
  }();
  return made;
}

Answer fitted(const GridRows& given) {
  std::vector<float> values(static_cast<std::size_t>(given.total()));
  given.fill(0, given.total(), values.data());
  Answer answer{std::vector<float>(values.size()), std::vector<std::uint8_t>(values.size())};
  isofold::IsotonicProblem problem;
  problem.values = values.data();
  problem.rows = isofold::Rows::ragged(given.offsets().data(), given.rows());
  EXPECT_TRUE(isofold::isotonic_regression(problem, {answer.fit.data(), answer.starts.data()}).ok());
  return answer;
}

// Handed over in pieces of `piece` segments, or of about 10,000 elements.
BlockReport judged(const GridRows& given, const Answer& answer, std::int64_t segment,
                   std::int64_t piece = 0) {
  if (piece == 0) piece = 1 + 10000 / segment;
  BlockCheck check(given, 2, segment);
  for (std::int64_t at = 0; at < given.total(); at += piece * segment) {
    check.take(answer.fit.data() + at, answer.starts.data() + at,
               std::min(piece * segment, given.total() - at));
  }
  return check.finish();
}

const std::int64_t kSegments[] = {1, 7, 64, 1000, 1 << 20};

struct Blocks {
  std::vector<std::size_t> begins;  // and the end of all
  explicit Blocks(const Answer& answer) {
    for (std::size_t i = 0; i < answer.starts.size(); ++i) {
      if (answer.starts[i] != 0) begins.push_back(i);
    }
    begins.push_back(answer.starts.size());
  }
};

// Gives elements begin .. end - 1 their own rounded mean.
void refit(Answer& answer, std::size_t begin, std::size_t end) {
  std::vector<std::int32_t> numbers(end - begin);
  rows().fill(static_cast<std::int64_t>(begin), static_cast<std::int64_t>(end), numbers.data());
  std::int64_t sum = 0;
  for (const std::int32_t k : numbers) sum += k;
  const float mean = rounded_grid_mean(sum, static_cast<std::int64_t>(end - begin));
  for (std::size_t i = begin; i < end; ++i) answer.fit[i] = mean;
}

bool begins_row(std::size_t at) {
  for (const std::int64_t offset : rows().offsets()) {
    if (offset == static_cast<std::int64_t>(at)) return true;
  }
  return false;
}

TEST(GridRows, TheSameInAnyPieces) {
  const std::int64_t total = rows().total();
  std::vector<float> whole(static_cast<std::size_t>(total));
  std::vector<float> pieces(whole.size());
  std::vector<std::int32_t> numbers(whole.size());
  rows().fill(0, total, whole.data());
  rows().fill(0, total, numbers.data());
  for (std::int64_t at = 0; at < total; at += 97) {
    rows().fill(at, std::min(total, at + 97), pieces.data() + at);
  }
  EXPECT_EQ(pieces, whole);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    ASSERT_EQ(static_cast<double>(whole[i]), std::ldexp(numbers[i], isofold_test::kGridExponent));
  }
}

TEST(GridRows, LongRowsHaveBlocksOfAllSizesAndFitIntoFloats) {
  const std::int64_t length = (std::int64_t{1} << 22) + 12345;
  const GridRows one({0, length}, 5);
  const Answer answer = fitted(one);
  const BlockReport report = judged(one, answer, 1 << 18);
  EXPECT_EQ(report.faults, 0) << report.first_fault;
  EXPECT_EQ(report.shortest, 1);
  EXPECT_GT(report.longest, length / 8);
  EXPECT_GT(report.blocks, 100000);
  // Far into a row of 2^33: still within float32's whole numbers.
  const std::int64_t huge = std::int64_t{1} << 33;
  const GridRows far({0, huge}, 5);
  std::vector<std::int32_t> numbers(1 << 16);
  for (std::int64_t at = 0; at < huge; at += huge / 64) {
    far.fill(at, at + (1 << 16), numbers.data());
    for (const std::int32_t k : numbers) ASSERT_LT(std::abs(k), 1 << 23);
  }
}

TEST(BlockCheck, RightAnswersPass) {
  const Answer answer = fitted(rows());
  const auto blocks = static_cast<std::int64_t>(Blocks(answer).begins.size()) - 1;
  for (const std::int64_t segment : kSegments) {
    for (const std::int64_t piece : {0, 500}) {
      const BlockReport report = judged(rows(), answer, segment, piece);
      EXPECT_EQ(report.faults, 0) << report.first_fault << ", segments of " << segment;
      EXPECT_EQ(report.blocks, blocks);
    }
  }
}

TEST(BlockCheck, WrongAnswersAreFound) {
  const Answer right = fitted(rows());
  const Blocks blocks(right);
  // `spoil` changes block b and says whether it could.
  const auto expect_found = [&](const std::string& what,
                                const std::function<bool(Answer&, std::size_t, std::size_t)>& spoil) {
    int tried = 0;
    const std::size_t count = blocks.begins.size() - 1;
    for (std::size_t k = 0; k < count && tried < 12; ++k) {
      const std::size_t b = k * 7919 % count;
      Answer wrong = right;
      if (!spoil(wrong, blocks.begins[b], blocks.begins[b + 1])) continue;
      ++tried;
      for (const std::int64_t segment : kSegments) {
        EXPECT_GT(judged(rows(), wrong, segment).faults, 0)
            << what << ", block at " << blocks.begins[b] << ", segments of " << segment;
      }
    }
    EXPECT_GT(tried, 5) << what;
  };
  expect_found("the last element one float up", [](Answer& a, std::size_t, std::size_t end) {
    a.fit[end - 1] = std::nextafterf(a.fit[end - 1], INFINITY);
    return true;
  });
  expect_found("a block one float down", [](Answer& a, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) a.fit[i] = std::nextafterf(a.fit[i], -INFINITY);
    return true;
  });
  expect_found("NaN", [](Answer& a, std::size_t begin, std::size_t) {
    a.fit[begin] = NAN;
    return true;
  });
  expect_found("two blocks as one", [&](Answer& a, std::size_t begin, std::size_t end) {
    if (end == a.starts.size() || begins_row(end)) return false;
    std::size_t last = end + 1;
    while (last < a.starts.size() && a.starts[last] == 0) ++last;
    a.starts[end] = 0;
    refit(a, begin, last);
    return true;
  });
  expect_found("a block cut in two", [](Answer& a, std::size_t begin, std::size_t end) {
    if (end - begin < 2) return false;
    const std::size_t cut = begin + (end - begin) / 2;
    a.starts[cut] = 1;
    refit(a, begin, cut);
    refit(a, cut, end);
    return true;
  });
  expect_found("a run of equal values cut in two", [](Answer& a, std::size_t begin, std::size_t end) {
    for (std::size_t cut = begin + 1; cut < end && end - begin < 50; ++cut) {
      refit(a, begin, cut);
      const float left = a.fit[begin];
      refit(a, cut, end);
      if (left != a.fit[cut]) continue;
      a.starts[cut] = 1;
      return true;
    }
    refit(a, begin, end);
    return false;
  });
  expect_found("a block that begins one element later", [&](Answer& a, std::size_t begin, std::size_t end) {
    if (begin == 0 || end - begin < 2 || begins_row(begin)) return false;
    std::size_t before = begin - 1;
    while (a.starts[before] == 0) --before;
    a.starts[begin] = 0;
    a.starts[begin + 1] = 1;
    refit(a, before, begin + 1);
    refit(a, begin + 1, end);
    return true;
  });
  expect_found("a block over the border of two rows", [](Answer& a, std::size_t, std::size_t end) {
    if (!begins_row(end) || end >= a.starts.size()) return false;
    a.starts[end] = 0;
    return true;
  });
  expect_found("a flag of 2", [](Answer& a, std::size_t begin, std::size_t) {
    a.starts[begin] = 2;
    return true;
  });
  Answer wrong = right;
  wrong.starts[0] = 0;
  for (const std::int64_t segment : kSegments) EXPECT_GT(judged(rows(), wrong, segment).faults, 0);
  BlockCheck unfinished(rows(), 1, 64);
  unfinished.take(right.fit.data(), right.starts.data(), 64);
  EXPECT_GT(unfinished.finish().faults, 0);
}

TEST(BlockCheck, MeansAreRoundedToNearestTiesToEven) {
  const double unit = std::ldexp(1.0, isofold_test::kGridExponent);
  EXPECT_EQ(rounded_grid_mean(0, 5), 0.0F);
  EXPECT_FALSE(std::signbit(rounded_grid_mean(0, 5)));
  EXPECT_EQ(rounded_grid_mean(-3, 1), static_cast<float>(-3 * unit));
  EXPECT_EQ(rounded_grid_mean(1, 3), static_cast<float>(unit / 3));
  // 2^23 + 1/2 and 2^23 + 3/2 lie halfway between floats; 2^24 - 1/2 rounds up to the next power of two.
  for (const int sign : {-1, 1}) {
    const auto mean = [&](std::int64_t sum, std::int64_t count) {
      return sign * static_cast<double>(rounded_grid_mean(sign * sum, count)) / unit;
    };
    EXPECT_EQ(mean(2 * 8388608 + 1, 2), 8388608.0);
    EXPECT_EQ(mean(2 * 8388608 + 3, 2), 8388610.0);
    EXPECT_EQ(mean(2 * 16777216 - 1, 2), 16777216.0);
    const std::int64_t many = std::int64_t{3} << 32;
    EXPECT_EQ(mean(8388608 * many + many / 2 + 1, many), 8388609.0);
    EXPECT_EQ(mean(8388608 * many + many / 2, many), 8388608.0);
    EXPECT_EQ(mean(8388608 * many + many / 2 - 1, many), 8388608.0);
  }
}

}  // namespace
