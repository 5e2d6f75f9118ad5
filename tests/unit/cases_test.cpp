// The stored exact cases, alone and as ragged batches, on every executor.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "support/case_file.hpp"
#include "support/fit_call.hpp"

namespace isofold_test {
namespace {

using isofold::Backend;

class Cases : public testing::TestWithParam<std::tuple<Backend, std::int64_t>> {
 protected:
  void SetUp() override {
    executor_.backend = std::get<0>(GetParam());
    executor_.chunk_size = std::get<1>(GetParam());
    cases_ = read_isotonic_cases(ISOFOLD_TEST_DATA "/isotonic_cases.json");
    ASSERT_EQ(cases_.size(), 120U);
  }

  isofold::Executor executor_;
  std::vector<IsotonicCase> cases_;
};

TEST_P(Cases, AgreeAlone) {
  for (const IsotonicCase& c : cases_) {
    FitCall call;
    call.values = c.values;
    call.weights = c.weights;
    call.increasing = c.increasing;
    call.values_type = call.weights_type = c.type;
    call.executor = executor_;
    const FitAnswer answer = run_fit(call);
    ASSERT_TRUE(answer.status.ok()) << c.name << ": " << answer.status.message;
    EXPECT_EQ(answer.fit(c.type), c.fit) << c.name;
    EXPECT_EQ(answer.blocks(), c.block_starts) << c.name;
  }
}

TEST_P(Cases, AgreeInRaggedBatches) {
  std::map<std::tuple<DataType, bool, bool>, std::vector<const IsotonicCase*>> batches;
  for (const IsotonicCase& c : cases_) batches[{c.type, c.increasing, c.weights.empty()}].push_back(&c);
  for (const auto& [key, members] : batches) {
    FitCall call;
    std::tie(call.values_type, call.increasing, std::ignore) = key;
    call.weights_type = call.values_type;
    call.offsets = {0};
    call.executor = executor_;
    std::vector<double> fit;
    std::vector<std::int64_t> blocks;
    for (const IsotonicCase* c : members) {
      for (const std::int64_t start : c->block_starts) blocks.push_back(call.offsets.back() + start);
      call.values.insert(call.values.end(), c->values.begin(), c->values.end());
      call.weights.insert(call.weights.end(), c->weights.begin(), c->weights.end());
      fit.insert(fit.end(), c->fit.begin(), c->fit.end());
      call.offsets.push_back(static_cast<std::int64_t>(call.values.size()));
    }
    const FitAnswer answer = run_fit(call);
    ASSERT_TRUE(answer.status.ok()) << answer.status.message;
    EXPECT_EQ(answer.fit(call.values_type), fit);
    EXPECT_EQ(answer.blocks(), blocks);
  }
}

INSTANTIATE_TEST_SUITE_P(Executors, Cases,
                         testing::Combine(testing::Values(Backend::cpu, Backend::reference),
                                          testing::Values<std::int64_t>(0, 32, 64, 65536)));

}  // namespace
}  // namespace isofold_test
