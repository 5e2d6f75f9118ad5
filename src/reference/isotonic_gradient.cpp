#include <cmath>
#include <limits>
#include <vector>

#include "algorithm/bounds.hpp"
#include "algorithm/exact_blocks.hpp"
#include "algorithm/row_view.hpp"
#include "exact/gradient_in_weights.hpp"
#include "exact/rounded_quotient.hpp"
#include "reference/reference.hpp"

namespace isofold::reference {
namespace {

// One block: values, weights (ones where there are none) and incoming gradient; both gradients out.
struct Block {
  std::vector<double> values;
  std::vector<double> weights;
  std::vector<double> gradient;
};

bool all_equal(const std::vector<double>& values) {
  for (const double value : values) {
    if (value != values.front()) return false;
  }
  return true;
}

void differentiate(const Block& block, const Bounds& bounds, Format fit_format, Format values_format,
                   Format weights_format, double* grad_values, double* grad_weights) {
  const std::size_t length = block.values.size();
  ExactSums sums;
  sums.add(block.values.data(), block.weights.data(), static_cast<std::int64_t>(length));
  const auto weight = sums.weight.value();
  const bool clipped = bounds.outside(exact_quotient(sums.total.value(), weight, fit_format));
  SumAccumulator incoming;
  bool finite = true;
  for (const double g : block.gradient) {
    finite = finite && std::isfinite(g);
    if (std::isfinite(g)) incoming.add(g);
  }
  const double mean = exact_quotient(sums.total.value(), weight, kFloat64);
  const double share = exact_quotient(incoming.value(), weight, kFloat64);
  const bool one_value = all_equal(block.values);
  for (std::size_t i = 0; i < length; ++i) {
    if (clipped) {
      grad_values[i] = 0.0;
      grad_weights[i] = 0.0;
    } else if (!finite) {
      grad_values[i] = std::numeric_limits<double>::quiet_NaN();
      grad_weights[i] = std::numeric_limits<double>::quiet_NaN();
    } else {
      grad_values[i] =
          exact_quotient(product(exact_double(block.weights[i]), incoming.value()), weight, values_format);
      grad_weights[i] =
          one_value ? 0.0 : round_to(gradient_in_weights(block.values[i], mean, share), weights_format);
    }
  }
}

}  // namespace

Outcome isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                          ConstArray gradient, const IsotonicGradient& out) {
  const Format fit_format = format_of(problem.values.type);
  const Bounds bounds(problem.lower_bound, problem.upper_bound, fit_format);
  for (std::int64_t r = 0; r < problem.rows.count; ++r) {
    for (std::int64_t start = problem.rows.begin(r); start < problem.rows.end(r);) {
      std::int64_t end = start + 1;
      while (end < problem.rows.end(r) && block_starts[end] == 0) ++end;
      const auto length = static_cast<std::size_t>(end - start);
      Block block{std::vector<double>(length), std::vector<double>(length, 1.0), std::vector<double>(length)};
      load(problem.values, start, end - start, block.values.data());
      if (problem.weights.present()) load(problem.weights, start, end - start, block.weights.data());
      load(gradient, start, end - start, block.gradient.data());
      std::vector<double> grad_values(length);
      std::vector<double> grad_weights(length);
      differentiate(block, bounds, fit_format, format_of(out.values.type), format_of(out.weights.type),
                    grad_values.data(), grad_weights.data());
      store(out.values, start, end - start, grad_values.data());
      store(out.weights, start, end - start, grad_weights.data());
      start = end;
    }
  }
  return Outcome::done;
}

}  // namespace isofold::reference
