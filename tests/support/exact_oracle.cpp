#include "support/exact_oracle.hpp"

#include <algorithm>
#include <cmath>

#include "support/exact_sums.hpp"

namespace isofold_test {

struct ExactOracle::Workspace {
  RowTerms terms;
  NarrowBlocks narrow;
  WideBlocks wide;
  std::vector<std::int64_t> starts;  // of the stack's blocks
  std::int64_t narrow_rows = 0;
  std::int64_t wide_rows = 0;
};

namespace {

void load_terms(const OracleRow& row, RowTerms& terms) {
  terms.products.clear();
  terms.weights.clear();
  terms.gradient.clear();
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    const Parts y = parts_of(row.values[i]);
    const Parts w = row.weights.empty() ? Parts{1, 0} : parts_of(row.weights[i]);
    terms.products.push(Int128{y.significand} * w.significand, y.exponent + w.exponent);
    terms.weights.push(w.significand, w.exponent);
    if (row.gradient.empty()) continue;
    const Parts g = std::isfinite(row.gradient[i]) ? parts_of(row.gradient[i]) : Parts{0, 0};
    terms.gradient.push(g.significand, g.exponent);
  }
}

// Leaves the maximal blocks on the stack and their first elements in `starts`.
template <class Blocks>
void pool(const OracleRow& row, Blocks& blocks, std::vector<std::int64_t>& starts) {
  starts.clear();
  const std::int64_t groups =
      row.tie_starts.empty() ? row.length() : static_cast<std::int64_t>(row.tie_starts.size());
  const auto group_start = [&](std::int64_t k) {
    if (k == groups) return row.length();
    return row.tie_starts.empty() ? k : row.tie_starts[static_cast<std::size_t>(k)];
  };
  for (std::int64_t k = 0; k < groups; ++k) {
    blocks.push(group_start(k), group_start(k + 1));
    starts.push_back(group_start(k));
    while (starts.size() > 1) {
      const int order = blocks.compare_last_two();
      if (row.increasing ? order < 0 : order > 0) break;
      blocks.absorb();
      starts.pop_back();
    }
  }
}

struct BlockRange {
  std::int64_t index;
  std::int64_t begin;
  std::int64_t end;
};

template <class Blocks>
void differentiate(const OracleRow& row, Blocks& blocks, const BlockRange& block, OracleAnswer& answer) {
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  const bool want_weights = row.gradient_weights_type != DataType::none;
  const Quotient mean = blocks.mean(block.index);
  if (is_clipped(row.values_type, mean.round(row.values_type), row.lower_bound, row.upper_bound))
    return;  // zeros

  bool finite = true;
  bool one_value = true;
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    finite = finite && std::isfinite(row.gradient[at(i)]);
    one_value = one_value && row.values[at(i)] == row.values[at(block.begin)];
  }
  if (!finite) {
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      answer.gradient_values[at(i)] = canonical_nan(row.gradient_values_type);
      if (want_weights) answer.gradient_weights[at(i)] = canonical_nan(row.gradient_weights_type);
    }
    return;
  }
  blocks.sum_gradient(block.begin, block.end);
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    const bool repeated = row.weights.empty() && i > block.begin;
    answer.gradient_values[at(i)] = repeated
                                        ? answer.gradient_values[at(i - 1)]
                                        : blocks.gradient(block.index, i).round(row.gradient_values_type);
  }
  if (!want_weights || one_value) return;
  const double m = decode(DataType::float64, mean.round(DataType::float64));
  const double q = decode(DataType::float64, blocks.slope(block.index).round(DataType::float64));
  for (std::int64_t i = block.begin; i < block.end; ++i) {
    answer.gradient_weights[at(i)] = weight_gradient(row.gradient_weights_type, row.values[at(i)], m, q);
  }
}

template <class Blocks>
void answer_row(const OracleRow& row, const RowTerms& terms, Blocks& blocks,
                std::vector<std::int64_t>& starts, OracleAnswer& answer) {
  blocks.reset(terms);
  pool(row, blocks, starts);
  const auto n = row.values.size();
  answer.fit.resize(n);
  answer.block_starts.assign(n, 0);
  answer.block_weights.resize(starts.size());
  answer.gradient_values.assign(row.gradient.empty() ? 0 : n, 0);
  answer.gradient_weights.assign(row.gradient.empty() || row.gradient_weights_type == DataType::none ? 0 : n,
                                 0);
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const BlockRange block{static_cast<std::int64_t>(k), starts[k],
                           k + 1 < starts.size() ? starts[k + 1] : row.length()};
    const std::uint64_t fit = clip_fit(row.fit_type, blocks.mean(block.index).round(row.fit_type),
                                       row.lower_bound, row.upper_bound);
    std::fill(answer.fit.begin() + block.begin, answer.fit.begin() + block.end, fit);
    answer.block_starts[static_cast<std::size_t>(block.begin)] = 1;
    answer.block_weights[k] = decode(DataType::float64, blocks.weight(block.index).round(DataType::float64));
    if (!row.gradient.empty()) differentiate(row, blocks, block, answer);
  }
}

}  // namespace

ExactOracle::ExactOracle() : workspace_(std::make_unique<Workspace>()) {}
ExactOracle::~ExactOracle() = default;

void ExactOracle::solve(const OracleRow& row, OracleAnswer& answer) {
  Workspace& w = *workspace_;
  load_terms(row, w.terms);
  if (NarrowBlocks::can_hold(w.terms)) {
    ++w.narrow_rows;
    answer_row(row, w.terms, w.narrow, w.starts, answer);
  } else {
    ++w.wide_rows;
    answer_row(row, w.terms, w.wide, w.starts, answer);
  }
}

std::int64_t ExactOracle::narrow_rows() const { return workspace_->narrow_rows; }
std::int64_t ExactOracle::wide_rows() const { return workspace_->wide_rows; }

}  // namespace isofold_test
