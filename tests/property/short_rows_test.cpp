// Many short rows in one call, which the CPU fits side by side: every bit as the reference executor has it.
#include <gtest/gtest.h>

#include "support/fit_call.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

constexpr std::int64_t kRows = 8 * 5 + 3;  // whole groups, and a rest

// Rows of one family and length; with `ragged` some are one element shorter.
FitCall short_rows(const Family& family, std::int64_t length, DataType type, bool ragged, Random& random) {
  FitCall call;
  call.values_type = type;
  call.offsets.push_back(0);
  for (std::int64_t r = 0; r < kRows; ++r) {
    ZooRow row;
    row.values_type = type;
    family.fill(random, ragged && random.chance(0.02) ? length - 1 : length, row);
    call.values.insert(call.values.end(), row.values.begin(), row.values.end());
    call.offsets.push_back(static_cast<std::int64_t>(call.values.size()));
  }
  call.increasing = random.chance(0.5);
  if (random.chance(0.3)) {
    call.lower_bound = -0.5;
    call.upper_bound = 0.5;
  }
  return call;
}

void expect_as_reference(FitCall call, const std::string& what) {
  const FitAnswer fit = run_fit(call);
  ASSERT_TRUE(fit.status.ok()) << what << ": " << fit.status.message;
  call.executor.backend = isofold::Backend::reference;
  const FitAnswer reference = run_fit(call);
  ASSERT_EQ(fit.starts, reference.starts) << what;
  ASSERT_EQ(fit.bits, reference.bits) << what;
}

TEST(ShortRows, AgreeWithTheReferenceExecutor) {
  Random random(1800);
  for (const Family& family : value_families()) {
    for (std::int64_t length = 1; length <= 18; ++length) {
      for (const DataType type : {DataType::float64, DataType::float32, DataType::float16}) {
        for (int repeat = 0; repeat < 6; ++repeat) {
          const FitCall call = short_rows(family, length, type, repeat % 2 != 0, random);
          expect_as_reference(call, std::string(family.name) + ", rows of " + std::to_string(length));
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(ShortRows, AreFittedToAnotherType) {
  Random random(1801);
  for (const Family& family : value_families()) {
    FitCall call = short_rows(family, 16, DataType::float32, false, random);
    call.fit_type = DataType::float64;
    expect_as_reference(call, std::string(family.name));
  }
}

// Means next to, and at, midpoints of neighbouring floats, in blocks of every length.
TEST(ShortRows, RoundMidpoints) {
  Random random(1802);
  for (const DataType type : {DataType::float64, DataType::float32}) {
    for (std::int64_t length = 2; length <= 16; ++length) {
      for (int repeat = 0; repeat < 40; ++repeat) {
        FitCall call;
        call.values_type = type;
        call.offsets.push_back(0);
        for (std::int64_t r = 0; r < kRows; ++r) {
          const double unit = type == DataType::float64 ? 0x1p-52 : 0x1p-23;
          double y = 1.0 + unit * static_cast<double>(random.below(1 << 20));
          for (std::int64_t i = 0; i < length; ++i) {
            call.values.push_back(y);
            y -= unit * static_cast<double>(random.between(0, 3));
          }
          call.offsets.push_back(static_cast<std::int64_t>(call.values.size()));
        }
        expect_as_reference(call, "rows of " + std::to_string(length));
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(ShortRows, NameTheElementThatIsNotAllowed) {
  FitCall call;
  for (std::int64_t r = 0; r <= kRows; ++r) call.offsets.push_back(16 * r);
  call.values.assign(16 * kRows, 1.0);
  call.values[16 * 11 + 5] = std::numeric_limits<double>::quiet_NaN();
  const FitAnswer fit = run_fit(call);
  EXPECT_FALSE(fit.status.ok());
  EXPECT_NE(fit.status.message.find("11"), std::string::npos) << fit.status.message;
}

}  // namespace
}  // namespace isofold_test
