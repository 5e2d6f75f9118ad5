#include "differential/check.hpp"

#include "isofold/isotonic.hpp"

namespace isofold_test {

namespace {

// The arrays of one call over some of a batch's rows.
struct Call {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int64_t> tie_offsets{0};
  GuardedArray values, weights, gradient;
  GuardedArray fit, gradient_values, gradient_weights;
  std::vector<std::uint8_t> block_starts, expected_starts;
  std::vector<double> block_weights, expected_weights;
  isofold::IsotonicProblem problem;
};

void load_inputs(const Batch& batch, std::size_t first, const std::vector<OracleAnswer>& answers,
                 Call& call) {
  std::int64_t position = 0;
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const OracleRow& row = batch.rows[first + k];
    for (const std::int64_t start : row.tie_starts) {
      if (start != 0 || position != 0) call.tie_offsets.push_back(position + start);
    }
    for (std::size_t i = 0; i < row.values.size(); ++i, ++position) {
      call.values.set(position, row.values[i]);
      if (!row.weights.empty()) call.weights.set(position, row.weights[i]);
      if (!row.gradient.empty()) call.gradient.set(position, row.gradient[i]);
    }
    const OracleAnswer& answer = answers[k];
    call.expected_starts.insert(call.expected_starts.end(), answer.block_starts.begin(),
                                answer.block_starts.end());
    call.expected_weights.insert(call.expected_weights.end(), answer.block_weights.begin(),
                                 answer.block_weights.end());
  }
  if (position > 0) call.tie_offsets.push_back(position);
}

void prepare(const Batch& batch, std::size_t first, const std::vector<OracleAnswer>& answers, Call& call) {
  for (std::size_t k = 0; k < answers.size(); ++k) {
    call.offsets.push_back(call.offsets.back() + batch.rows[first + k].length());
  }
  const std::int64_t total = call.offsets.back();
  const OracleRow& common = batch.rows[first];
  const bool want_gradient = batch.gradient_type != DataType::none;
  call.values = {batch.values_type, total, batch.layout};
  call.weights = {batch.weights_type, total, batch.layout};
  call.gradient = {batch.gradient_type, total, batch.layout};
  call.fit = {common.fit_type, total, batch.layout};
  call.gradient_values = {want_gradient ? common.gradient_values_type : DataType::none, total, batch.layout};
  call.gradient_weights = {want_gradient ? common.gradient_weights_type : DataType::none, total,
                           batch.layout};
  load_inputs(batch, first, answers, call);
  call.block_starts.assign(call.expected_starts.size(), 0xee);
  call.block_weights.assign(call.expected_weights.size(), -1.0);

  const auto rows = static_cast<std::int64_t>(answers.size());
  call.problem.values = call.values.input();
  call.problem.weights = call.weights.input();
  call.problem.rows = batch.rectangle ? isofold::Rows::rectangle(rows, common.length())
                                      : isofold::Rows::ragged(call.offsets.data(), rows);
  call.problem.increasing = common.increasing;
  if (batch.tied) {
    call.problem.tie_offsets = call.tie_offsets.data();
    call.problem.tie_groups = static_cast<std::int64_t>(call.tie_offsets.size()) - 1;
  }
  call.problem.lower_bound = common.lower_bound;
  call.problem.upper_bound = common.upper_bound;
}

// Empty when every call succeeded and no guard was touched.
std::string run(const Batch& batch, Call& call) {
  const isofold::IsotonicFit out{call.fit.output(), call.block_starts.data()};
  isofold::Status status = isofold::isotonic_regression(call.problem, out, batch.executor);
  if (!status.ok()) return "isotonic_regression: " + status.message;
  if (batch.gradient_type != DataType::none) {
    const isofold::IsotonicGradient gradients{call.gradient_values.output(), call.gradient_weights.output()};
    status = isofold::isotonic_gradient(call.problem, call.expected_starts.data(), call.gradient.input(),
                                        gradients, batch.executor);
    if (!status.ok()) return "isotonic_gradient: " + status.message;
  }
  status = isofold::block_weights(call.problem, call.expected_starts.data(), call.block_weights.data(),
                                  batch.executor);
  if (!status.ok()) return "block_weights: " + status.message;
  for (const GuardedArray* array : {&call.values, &call.weights, &call.gradient, &call.fit,
                                    &call.gradient_values, &call.gradient_weights}) {
    if (array->type() != DataType::none && !array->guards_intact())
      return "memory around an array was written";
  }
  return {};
}

std::string difference(const char* name, const GuardedArray& got, std::int64_t begin,
                       const std::vector<std::uint64_t>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::uint64_t bits = got.bits(begin + static_cast<std::int64_t>(i));
    if (bits == expected[i]) continue;
    char text[160];
    std::snprintf(text, sizeof text, "%s[%zu] is %a (bits %llx), not %a (bits %llx)", name, i,
                  decode(got.type(), bits), static_cast<unsigned long long>(bits),
                  decode(got.type(), expected[i]), static_cast<unsigned long long>(expected[i]));
    return text;
  }
  return {};
}

// The first difference in one row of the call; empty when there is none. `block` is the row's first block.
std::string compare_row(const Call& call, std::int64_t begin, std::int64_t block,
                        const OracleAnswer& answer) {
  for (std::size_t i = 0; i < answer.block_starts.size(); ++i) {
    if (call.block_starts[static_cast<std::size_t>(begin) + i] != answer.block_starts[i]) {
      return "block_starts[" + std::to_string(i) + "] is " +
             std::to_string(call.block_starts[static_cast<std::size_t>(begin) + i]) + ", not " +
             std::to_string(answer.block_starts[i]);
    }
  }
  std::string what = difference("fit", call.fit, begin, answer.fit);
  if (what.empty()) what = difference("gradient_values", call.gradient_values, begin, answer.gradient_values);
  if (what.empty())
    what = difference("gradient_weights", call.gradient_weights, begin, answer.gradient_weights);
  for (std::size_t k = 0; what.empty() && k < answer.block_weights.size(); ++k) {
    const double got = call.block_weights[static_cast<std::size_t>(block) + k];
    if (got != answer.block_weights[k]) {
      what =
          "block_weights[" + std::to_string(k) + "] is " + hex(got) + ", not " + hex(answer.block_weights[k]);
    }
  }
  return what;
}

void check_call(const Batch& batch, std::size_t first, const std::vector<OracleAnswer>& answers,
                const char* how, std::vector<Mismatch>& mismatches) {
  Call call;
  prepare(batch, first, answers, call);
  const std::string failure = run(batch, call);
  if (!failure.empty()) {
    mismatches.push_back({first, std::string(how) + ": " + failure});
    return;
  }
  std::int64_t block = 0;
  for (std::size_t k = 0; k < answers.size(); ++k) {
    const std::string what = compare_row(call, call.offsets[k], block, answers[k]);
    if (!what.empty()) mismatches.push_back({first + k, std::string(how) + ": " + what});
    block += static_cast<std::int64_t>(answers[k].block_weights.size());
  }
}

}  // namespace

BatchReport check_batch(const Batch& batch, ExactOracle& oracle, std::int64_t alone_every) {
  std::vector<OracleAnswer> answers(batch.rows.size());
  for (std::size_t k = 0; k < answers.size(); ++k) oracle.solve(batch.rows[k], answers[k]);
  BatchReport report;
  check_call(batch, 0, answers, "in the batch", report.mismatches);
  for (std::size_t k = 0; alone_every > 0 && k < answers.size(); ++k) {
    if (batch.row_index(k) % alone_every != 0) continue;
    check_call(batch, k, {answers[k]}, "alone", report.mismatches);
    ++report.single_calls;
  }
  return report;
}

}  // namespace isofold_test
