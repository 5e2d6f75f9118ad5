// Best splits on the CPU: every feature of every node by itself, then each node's winners once more, for
// their plateau and what comes after them.
#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithm/split_scan.hpp"
#include "cpu/parallel.hpp"
#include "cpu/trees.hpp"

namespace isofold::cpu {
namespace {

// Serial scans of one feature of one node.
class FeatureScan {
 public:
  FeatureScan(const ScaledRules& rules, const NodeState& node, const FeatureView& view, std::int32_t feature,
              std::int64_t node_number)
      : rules_(rules), node_(node), view_(view) {
    if (view.kind == ScanKind::subset) sort_categories();
    const std::int32_t subset = most_in_subset(rules, static_cast<std::int32_t>(order_.size()));
    only_ = drawn(rules, node_number, feature, drawn_from(view, subset));
  }

  // Calls visit(candidate) for every valid one.
  template <class Visit>
  void visit_all(const Visit& visit) const {
    const auto valid = [&](const Candidate& candidate) {
      if (candidate.found()) visit(candidate);
    };
    if (view_.kind == ScanKind::subset) {
      for (const std::int32_t direction : {0, 1}) {
        visit_subsets(rules_, node_, view_, order_.data(), static_cast<std::int32_t>(order_.size()), only_,
                      direction, valid);
      }
    } else if (view_.kind == ScanKind::one_hot) {
      for (std::int32_t b = 0; b < view_.values; ++b) {
        if (only_ >= 0 && b != only_) continue;
        valid({candidate_gain(rules_, node_, view_, view_.bin(b), 0), 0, b});
      }
    } else {
      visit_thresholds(valid);
    }
  }

  [[nodiscard]] LeafSums left_of(const Candidate& candidate) const {
    if (view_.kind == ScanKind::one_hot) return view_.bin(candidate.bin);
    LeafSums left;
    if (view_.kind == ScanKind::numerical && candidate.direction == 0) left = view_.missing();
    for (std::int32_t i = 0; i <= candidate.bin; ++i) left = left + view_.bin(bin_at(candidate, i));
    return left;
  }

  void write_left_bins(const Candidate& candidate, std::uint32_t* words) const {
    const auto set = [&](std::int32_t bin) { words[bin / 32] |= 1U << (bin % 32); };
    if (view_.kind == ScanKind::one_hot) set(candidate.bin);
    if (view_.kind != ScanKind::subset) return;
    for (std::int32_t i = 0; i <= candidate.bin; ++i) set(bin_at(candidate, i));
  }

 private:
  template <class Visit>
  void visit_thresholds(const Visit& visit) const {
    for (const std::int32_t direction : {0, 1}) {
      LeafSums left = direction == 0 ? view_.missing() : LeafSums{};
      double gain = kNoGain;
      const std::int32_t count = thresholds(view_, direction);
      for (std::int32_t b = 0; b < count; ++b) {
        const LeafSums added = view_.bin(b);
        left = left + added;
        if (only_ >= 0 && b != only_) continue;
        // Equal sums, equal gain: there is no need to form it again.
        if (b == 0 || only_ >= 0 || added.count != 0) {
          gain = candidate_gain(rules_, node_, view_, left, direction);
        }
        visit({gain, direction, b});
      }
    }
  }

  void sort_categories() {
    for (std::int32_t b = 0; b < view_.values; ++b) {
      if (joins_subsets(rules_, view_.counts[b])) order_.push_back(b);
    }
    std::vector<double> ratios(static_cast<std::size_t>(view_.values));
    for (const std::int32_t b : order_) {
      ratios[static_cast<std::size_t>(b)] = category_ratio(rules_, view_.bin(b));
    }
    std::sort(order_.begin(), order_.end(), [&](std::int32_t a, std::int32_t b) {
      const double x = ratios[static_cast<std::size_t>(a)];
      const double y = ratios[static_cast<std::size_t>(b)];
      return x != y ? x < y : a < b;
    });
  }

  [[nodiscard]] std::int32_t bin_at(const Candidate& candidate, std::int32_t i) const {
    if (view_.kind != ScanKind::subset) return i;
    const auto at = static_cast<std::size_t>(i);
    return order_[candidate.direction == 0 ? at : order_.size() - 1 - at];
  }

  const ScaledRules& rules_;
  const NodeState& node_;
  const FeatureView& view_;
  std::vector<std::int32_t> order_;
  std::int32_t only_ = -1;
};

struct Run {
  std::int32_t first;
  std::int32_t last;
};

// The neighbouring thresholds that tie with the winner.
Run plateau_of(const FeatureScan& scan, const FeatureView& view, const Candidate& winner) {
  Run run{winner.bin, winner.bin};
  if (view.kind != ScanKind::numerical) return run;
  std::vector<std::int32_t> tied;
  scan.visit_all([&](const Candidate& candidate) {
    if (candidate.direction == winner.direction && candidate.gain == winner.gain)
      tied.push_back(candidate.bin);
  });
  for (const std::int32_t bin : tied) {
    if (bin == run.last + 1) run.last = bin;
  }
  std::reverse(tied.begin(), tied.end());
  for (const std::int32_t bin : tied) {
    if (bin == run.first - 1) run.first = bin;
  }
  return run;
}

class NodeSearch {
 public:
  NodeSearch(const SplitProblem& problem, const ScaledRules& rules) : problem_(problem), rules_(rules) {}

  [[nodiscard]] NodeState node(std::int64_t n) const {
    LeafSums total;
    const std::int64_t base = n * problem_.features * problem_.bin_count;
    // Every row is in one bin of each feature, so any feature tells.
    const std::int32_t bins = problem_.features > 0 ? problem_.bin_count : 0;
    for (std::int64_t b = base; b < base + bins; ++b) {
      total = total + LeafSums{problem_.histogram.gradients[b], problem_.histogram.hessians[b],
                               problem_.histogram.counts[b]};
    }
    return make_node(rules_, total,
                     problem_.parent_outputs != nullptr ? problem_.parent_outputs + n : nullptr,
                     problem_.output_bounds != nullptr ? problem_.output_bounds + 2 * n : nullptr);
  }

  [[nodiscard]] FeatureView view(std::int64_t n, std::int32_t feature) const {
    FeatureRules all;
    all.bins = problem_.bin_count;
    return feature_view(problem_.histogram, (n * problem_.features + feature) * problem_.bin_count,
                        problem_.bin_count,
                        problem_.feature_rules != nullptr ? problem_.feature_rules[feature] : all, rules_);
  }

  [[nodiscard]] FeatureBest search(const NodeState& node, std::int64_t n, std::int32_t feature) const {
    if (problem_.feature_mask != nullptr && problem_.feature_mask[n * problem_.features + feature] == 0) {
      return {};
    }
    const FeatureView seen = view(n, feature);
    const FeatureScan scan(rules_, node, seen, feature, number(n));
    Candidate best;
    scan.visit_all([&](const Candidate& candidate) {
      if (!best.found() || comes_before(candidate, best, rules_.ties, seen.kind)) best = candidate;
    });
    return feature_best(node, best);
  }

  // `after`: the best gain among the features ranked after this one.
  [[nodiscard]] Split finish(const NodeState& node, std::int64_t n, std::int32_t feature, FeatureBest best,
                             double after, std::uint32_t* left_bins) const {
    const FeatureView seen = view(n, feature);
    const FeatureScan scan(rules_, node, seen, feature, number(n));
    Candidate& winner = best.candidate;
    const Run plateau = plateau_of(scan, seen, winner);
    if (rules_.ties == TiePolicy::middle) winner.bin = plateau.first + (plateau.last - plateau.first) / 2;
    double runner_up = after;
    scan.visit_all([&](const Candidate& candidate) {
      if (candidate.direction == winner.direction && candidate.bin >= plateau.first &&
          candidate.bin <= plateau.last) {
        return;
      }
      runner_up = std::max(runner_up, candidate.gain - node.shift);
    });
    Split split = describe(rules_, node, seen, feature, best, scan.left_of(winner), runner_up);
    split.plateau_first = plateau.first;
    split.plateau_last = plateau.last;
    if (left_bins != nullptr) scan.write_left_bins(winner, left_bins);
    return split;
  }

 private:
  [[nodiscard]] std::int64_t number(std::int64_t n) const {
    return problem_.node_numbers != nullptr ? problem_.node_numbers[n] : n;
  }

  const SplitProblem& problem_;
  const ScaledRules& rules_;
};

}  // namespace

Outcome best_splits(const SplitProblem& problem, Split* out, std::uint32_t* left_bins,
                    const Executor& executor) {
  const ScaledRules rules = scale_rules(problem.rules, problem.grid);
  const NodeSearch search(problem, rules);
  const int threads = thread_count(executor);
  const std::int64_t features = problem.features;
  std::vector<NodeState> nodes(static_cast<std::size_t>(problem.nodes));
  for (std::int64_t n = 0; n < problem.nodes; ++n) nodes[static_cast<std::size_t>(n)] = search.node(n);
  std::vector<FeatureBest> best(static_cast<std::size_t>(problem.nodes * features));
  bool finished = parallel_for(
      executor, threads, problem.nodes * features, 8, [&](int, std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const std::int64_t n = i / features;
          best[static_cast<std::size_t>(i)] = search.search(nodes[static_cast<std::size_t>(n)], n,
                                                            static_cast<std::int32_t>(i - n * features));
        }
      });
  if (!finished) return Outcome::interrupted;
  const std::int64_t words = (problem.bin_count + 31) / 32;
  const std::int64_t wanted = problem.top_k;
  finished = parallel_for(executor, threads, problem.nodes, 1, [&](int, std::int64_t n, std::int64_t) {
    const FeatureBest* of_node = best.data() + n * features;
    std::vector<std::int32_t> ranked(static_cast<std::size_t>(features));
    std::iota(ranked.begin(), ranked.end(), 0);
    std::sort(ranked.begin(), ranked.end(), [&](std::int32_t a, std::int32_t b) {
      return feature_before(of_node[a].gain, a, of_node[b].gain, b);
    });
    for (std::int64_t k = 0; k < wanted; ++k) {
      Split& split = out[n * wanted + k];
      split = {};
      std::uint32_t* bits = left_bins != nullptr ? left_bins + (n * wanted + k) * words : nullptr;
      if (bits != nullptr) std::fill_n(bits, words, 0U);
      if (k >= features) continue;
      const std::int32_t feature = ranked[static_cast<std::size_t>(k)];
      if (!of_node[feature].candidate.found()) continue;
      const double after = k + 1 < features ? of_node[ranked[static_cast<std::size_t>(k) + 1]].gain : kNoGain;
      split = search.finish(nodes[static_cast<std::size_t>(n)], n, feature, of_node[feature], after, bits);
    }
  });
  return finished ? Outcome::done : Outcome::interrupted;
}

}  // namespace isofold::cpu
