#include <cmath>
#include <vector>

#include "algorithm/bounds.hpp"
#include "algorithm/exact_blocks.hpp"
#include "algorithm/row_view.hpp"
#include "exact/rounded_quotient.hpp"
#include "reference/reference.hpp"

namespace isofold::reference {
namespace {

bool allowed(const std::vector<double>& values, const std::vector<double>& weights) {
  for (const double value : values) {
    if (!std::isfinite(value)) return false;
  }
  for (const double weight : weights) {
    if (!(std::isfinite(weight) && weight > 0)) return false;
  }
  return true;
}

}  // namespace

Outcome isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out) {
  const Format format = format_of(out.fit.present() ? out.fit.type : problem.values.type);
  const Bounds bounds(problem.lower_bound, problem.upper_bound, format);
  for (std::int64_t r = 0; r < problem.rows.count; ++r) {
    const std::int64_t begin = problem.rows.begin(r);
    const std::int64_t length = problem.rows.end(r) - begin;
    const RowView row{problem.values, problem.weights, begin, length, problem.increasing ? 1.0 : -1.0};
    std::vector<double> values(static_cast<std::size_t>(length));
    std::vector<double> weights(row.weighted() ? static_cast<std::size_t>(length) : 0);
    load_values(row, 0, length, values.data());
    if (row.weighted()) load_weights(row, 0, length, weights.data());
    if (!allowed(values, weights)) return Outcome::bad_input;

    if (out.block_starts != nullptr) {
      for (std::int64_t i = 0; i < length; ++i) out.block_starts[begin + i] = 0;
    }
    const std::vector<ExactBlock> blocks =
        exact_blocks(values.data(), row.weighted() ? weights.data() : nullptr, length);
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      const std::int64_t start = blocks[b].start;
      const std::int64_t end = b + 1 < blocks.size() ? blocks[b + 1].start : length;
      const double mean = exact_quotient(blocks[b].sums.total.value(), blocks[b].sums.weight.value(), format);
      store_constant(out.fit, begin + start, end - start, bounds.clip(row.sign * mean));
      if (out.block_starts != nullptr) out.block_starts[begin + start] = 1;
    }
  }
  return Outcome::done;
}

}  // namespace isofold::reference
