// Long rows of every family: the CPU's answer against the reference executor's, the oracle's, and the
// optimality conditions.
#include <gtest/gtest.h>

#include "support/exact_oracle.hpp"
#include "support/long_row.hpp"
#include "support/optimality.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;

struct FamilyName {
  std::string_view name;
};
void PrintTo(const FamilyName& family, std::ostream* out) { *out << family.name; }

std::vector<FamilyName> all_families() {
  std::vector<FamilyName> names;
  for (const Family& family : value_families()) names.push_back({family.name});
  return names;
}

class LongRows : public testing::TestWithParam<FamilyName> {
 protected:
  [[nodiscard]] static const Family& family() { return *find_family(GetParam().name); }

  // The first place where the vectors differ, so that a failure does not print a million elements.
  template <class T>
  static void expect_same(const std::vector<T>& got, const std::vector<T>& expected,
                          const std::string& what) {
    ASSERT_EQ(got.size(), expected.size()) << what;
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], expected[i]) << what << ", element " << i;
  }

  static void check_with_oracle(const LongRow& row) {
    ExactOracle oracle;
    OracleAnswer expected;
    oracle.solve(row.oracle_row(), expected);
    const FitAnswer fit = run_fit(row.call);
    ASSERT_TRUE(fit.status.ok()) << row.name << ": " << fit.status.message;
    expect_same(fit.starts, expected.block_starts, row.name + ": block starts");
    expect_same(fit.bits, expected.fit, row.name + ": fit");
    if (row.gradient.gradient.empty()) return;
    const GradientAnswer gradient = run_gradient(row.call, fit.starts, row.gradient);
    ASSERT_TRUE(gradient.status.ok()) << row.name << ": " << gradient.status.message;
    expect_same(gradient.values, expected.gradient_values, row.name + ": gradient in the values");
    expect_same(gradient.weights, expected.gradient_weights, row.name + ": gradient in the weights");
    expect_same(gradient.block_weights, expected.block_weights, row.name + ": block weights");
  }

  static void check_with_reference(LongRow row) {
    const FitAnswer fit = run_fit(row.call);
    ASSERT_TRUE(fit.status.ok()) << row.name << ": " << fit.status.message;
    EXPECT_EQ(optimality_violation(row.oracle_row(), fit.starts, fit.bits), "") << row.name;
    GradientAnswer gradient;
    if (!row.gradient.gradient.empty()) gradient = run_gradient(row.call, fit.starts, row.gradient);
    row.call.executor.backend = Backend::reference;
    const FitAnswer reference = run_fit(row.call);
    expect_same(fit.starts, reference.starts, row.name + ": block starts");
    expect_same(fit.bits, reference.bits, row.name + ": fit");
    if (row.gradient.gradient.empty()) return;
    const GradientAnswer expected = run_gradient(row.call, fit.starts, row.gradient);
    expect_same(gradient.values, expected.values, row.name + ": gradient in the values");
    expect_same(gradient.weights, expected.weights, row.name + ": gradient in the weights");
  }
};

TEST_P(LongRows, AgreeWithTheOracle) {
  std::uint64_t seed = 100;
  for (const std::int64_t length : {1000, 1024, 10007, 100003}) {
    for (const DataType type : {DataType::float32, DataType::float64, DataType::float16}) {
      for (const Weighting weighting : {Weighting::none, Weighting::extreme, Weighting::any}) {
        if (length > 50000 && (type == DataType::float16 || weighting == Weighting::extreme)) continue;
        LongRow row = make_long_row(family(), length, {type, weighting, seed % 2 == 0, length < 50000, seed});
        row.call.executor.threads = static_cast<int>(seed % 3) + 1;
        row.call.executor.chunk_size = length < 5000 ? 64 : (seed % 2 == 0 ? 0 : 1024);
        check_with_oracle(row);
        ++seed;
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(LongRows, AgreeWithTheReferenceExecutor) {
  std::uint64_t seed = 200;
  for (const std::int64_t length : {1000, 10000, 100000}) {
    for (const DataType type : {DataType::float64, DataType::float32}) {
      for (const Weighting weighting : {Weighting::none, Weighting::ones_to_nine, Weighting::any}) {
        if (length == 100000 && (type == DataType::float64) != (weighting == Weighting::any)) continue;
        LongRow row =
            make_long_row(family(), length, {type, weighting, seed % 2 == 0, length == 10000, seed});
        row.call.executor.threads = 2;
        row.call.executor.chunk_size = seed % 2 == 0 ? 0 : 256;
        check_with_reference(row);
        ++seed;
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(LongRows, AMillionElements) {
  LongRow row = make_long_row(family(), 1000000, {DataType::float64, Weighting::none, true, false, 301});
  row.call.executor.threads = 2;
  check_with_reference(row);
}

TEST_P(LongRows, AMillionWeightedElements) {
  LongRow row = make_long_row(family(), 1000000, {DataType::float32, Weighting::extreme, false, false, 302});
  row.call.executor.threads = 2;
  check_with_reference(row);
}

TEST_P(LongRows, WeightsWhoseSumOverflows) {
  std::uint64_t seed = 400;
  for (const DataType type : {DataType::float64, DataType::float32}) {
    for (const std::int64_t length : {300, 3000, 9001}) {
      LongRow row = make_long_row(family(), length, {type, Weighting::overflowing, true, false, seed});
      row.call.executor.threads = 2;
      check_with_reference(row);
      ++seed;
    }
  }
}

std::string test_name(const testing::TestParamInfo<FamilyName>& family) {
  std::string name(family.param.name);
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Families, LongRows, testing::ValuesIn(all_families()), test_name);

}  // namespace
}  // namespace isofold_test
