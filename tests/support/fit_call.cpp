#include "support/fit_call.hpp"

#include <gtest/gtest.h>

namespace isofold_test {

namespace {

GuardedArray filled(DataType type, const std::vector<double>& numbers, const Layout& layout) {
  return {numbers.empty() ? DataType::none : type, numbers, layout};
}

std::vector<std::uint64_t> all_bits(const GuardedArray& array) {
  std::vector<std::uint64_t> bits;
  if (array.type() == DataType::none) return bits;
  bits.reserve(static_cast<std::size_t>(array.length()));
  for (std::int64_t i = 0; i < array.length(); ++i) bits.push_back(array.bits(i));
  return bits;
}

// The inputs in memory, and the problem that points at them.
struct Loaded {
  explicit Loaded(const FitCall& call)
      : values(filled(call.values_type, call.values, call.layout)),
        weights(filled(call.weights_type, call.weights, call.layout)),
        values_before(values.snapshot()),
        weights_before(weights.snapshot()) {
    // An empty array still says its type.
    problem.values = isofold::ConstArray(values.input().data, call.values_type);
    problem.weights = weights.input();
    problem.rows =
        call.offsets.empty()
            ? isofold::Rows::single(static_cast<std::int64_t>(call.values.size()))
            : isofold::Rows::ragged(call.offsets.data(), static_cast<std::int64_t>(call.offsets.size()) - 1);
    problem.increasing = call.increasing;
    if (!call.tie_offsets.empty()) {
      problem.tie_offsets = call.tie_offsets.data();
      problem.tie_groups = static_cast<std::int64_t>(call.tie_offsets.size()) - 1;
    }
    problem.lower_bound = call.lower_bound;
    problem.upper_bound = call.upper_bound;
  }
  void expect_untouched() const {
    EXPECT_TRUE(values.snapshot() == values_before) << "the values were written";
    EXPECT_TRUE(weights.snapshot() == weights_before) << "the weights were written";
  }

  GuardedArray values, weights;
  std::vector<unsigned char> values_before, weights_before;
  isofold::IsotonicProblem problem;
};

}  // namespace

std::vector<double> FitAnswer::fit(DataType type) const {
  std::vector<double> numbers;
  numbers.reserve(bits.size());
  for (const std::uint64_t b : bits) numbers.push_back(decode(type, b));
  return numbers;
}

std::vector<std::int64_t> FitAnswer::blocks() const {
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] != 0) positions.push_back(static_cast<std::int64_t>(i));
  }
  return positions;
}

FitAnswer run_fit(const FitCall& call) {
  const Loaded loaded(call);
  const auto total = static_cast<std::int64_t>(call.values.size());
  GuardedArray fit(call.chosen_fit_type(), total, call.layout);
  FitAnswer answer;
  answer.starts.assign(call.values.size(), 0xee);
  answer.status =
      isofold::isotonic_regression(loaded.problem, {fit.output(), answer.starts.data()}, call.executor);
  loaded.expect_untouched();
  EXPECT_TRUE(fit.guards_intact()) << "memory around the fit was written";
  answer.bits = all_bits(fit);
  return answer;
}

GradientAnswer run_gradient(const FitCall& call, const std::vector<std::uint8_t>& starts,
                            const GradientCall& gradient) {
  const Loaded loaded(call);
  const auto total = static_cast<std::int64_t>(call.values.size());
  const auto chosen = [&](DataType type) { return type == DataType::none ? call.values_type : type; };
  const GuardedArray incoming = filled(chosen(gradient.gradient_type), gradient.gradient, call.layout);
  GuardedArray values(chosen(gradient.gradient_values_type), total, call.layout);
  GuardedArray weights(gradient.gradient_weights_type, total, call.layout);
  GradientAnswer answer;
  answer.status = isofold::isotonic_gradient(loaded.problem, starts.data(),
                                             {incoming.input().data, chosen(gradient.gradient_type)},
                                             {values.output(), weights.output()}, call.executor);
  loaded.expect_untouched();
  EXPECT_TRUE(values.guards_intact() && weights.guards_intact()) << "memory around a gradient was written";
  answer.values = all_bits(values);
  answer.weights = all_bits(weights);
  std::int64_t blocks = 0;
  for (const std::uint8_t start : starts) blocks += start != 0 ? 1 : 0;
  answer.block_weights.assign(static_cast<std::size_t>(blocks), -1.0);
  if (answer.status.ok()) {
    answer.status =
        isofold::block_weights(loaded.problem, starts.data(), answer.block_weights.data(), call.executor);
  }
  return answer;
}

}  // namespace isofold_test
