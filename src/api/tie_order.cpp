#include "api/tie_order.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "algorithm/row_view.hpp"

namespace isofold::api {

TieOrder::TieOrder(const IsotonicProblem& problem) : problem_(problem) {
  const std::int64_t total = problem.rows.total();
  values_.resize(static_cast<std::size_t>(total));
  load(problem.values, 0, total, values_.data());
  if (problem.weights.present()) {
    weights_.resize(static_cast<std::size_t>(total));
    load(problem.weights, 0, total, weights_.data());
    problem_.weights = weights_.data();
  }
  problem_.values = values_.data();
  problem_.tie_offsets = nullptr;

  const auto precedes = [&](double a, double b) { return problem.increasing ? a > b : a < b; };
  std::vector<std::pair<double, double>> group;
  for (std::int64_t g = 0; g < problem.tie_groups; ++g) {
    const auto begin = static_cast<std::size_t>(problem.tie_offsets[g]);
    const auto end = static_cast<std::size_t>(problem.tie_offsets[g + 1]);
    if (end - begin == 1) continue;
    const auto first = values_.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = values_.begin() + static_cast<std::ptrdiff_t>(end);
    if (weights_.empty()) {
      std::sort(first, last, precedes);
      continue;
    }
    if (std::is_sorted(first, last, precedes)) continue;
    group.clear();
    for (std::size_t i = begin; i < end; ++i) group.emplace_back(values_[i], weights_[i]);
    std::sort(group.begin(), group.end(),
              [&](const auto& a, const auto& b) { return precedes(a.first, b.first); });
    for (std::size_t i = begin; i < end; ++i) std::tie(values_[i], weights_[i]) = group[i - begin];
  }
}

}  // namespace isofold::api
