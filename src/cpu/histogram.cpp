// Histograms on the CPU: a row adds a pair of 64-bit integers to one bin of each feature.
//
// The count shares a word with the hessians: those of kMostRows rows sum to less than 2^40, above which the
// rows are counted. So an update is one 16-byte load, add and store, and the words are taken apart once for
// every kMostRows rows. A few features are done side by side: their bins stay in the first-level cache, and a
// run of rows in one bin of a feature leaves something to do while its store is on its way back to a load.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "algorithm/gradient_grid.hpp"
#include "cpu/parallel.hpp"
#include "cpu/trees.hpp"

namespace isofold::cpu {
namespace {

using Pair __attribute__((vector_size(16))) = std::int64_t;  // gradient; hessian + 2^40 a row

constexpr std::int64_t kMostRows = 65535;
constexpr int kCountShift = 40;
constexpr std::int64_t kBlockRows = 1024;  // their pairs are 16 KiB
constexpr std::int64_t kSpanFeatures = 64;
constexpr int kSideBySide = 4;
static_assert(kMostRows * std::int64_t{kMostHessian} < std::int64_t{1} << kCountShift);

// The rows of a node: a range of all, or a list.
struct RowList {
  const std::int64_t* rows = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t at(std::int64_t i) const { return rows != nullptr ? rows[i] : i; }
};

// Rows by node, in their order.
struct NodeRows {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> starts;
};

// False where a row or a node is out of range.
bool sort_by_node(const HistogramProblem& problem, NodeRows& sorted) {
  const std::int64_t terms = problem.row_subset != nullptr ? problem.subset_rows : problem.bins.rows;
  sorted.starts.assign(static_cast<std::size_t>(problem.nodes) + 1, 0);
  for (std::int64_t i = 0; i < terms; ++i) {
    const std::int64_t row = problem.row_subset != nullptr ? problem.row_subset[i] : i;
    if (row < 0 || row >= problem.bins.rows) return false;
    const std::int32_t node = problem.node_ids != nullptr ? problem.node_ids[row] : 0;
    if (node < -1 || node >= problem.nodes) return false;
    if (node >= 0) ++sorted.starts[static_cast<std::size_t>(node) + 1];
  }
  for (std::size_t n = 1; n < sorted.starts.size(); ++n) sorted.starts[n] += sorted.starts[n - 1];
  std::vector<std::int64_t> next(sorted.starts.begin(), sorted.starts.end() - 1);
  sorted.rows.resize(static_cast<std::size_t>(sorted.starts.back()));
  for (std::int64_t i = 0; i < terms; ++i) {
    const std::int64_t row = problem.row_subset != nullptr ? problem.row_subset[i] : i;
    const std::int32_t node = problem.node_ids != nullptr ? problem.node_ids[row] : 0;
    if (node >= 0) {
      sorted.rows[static_cast<std::size_t>(next[static_cast<std::size_t>(node)]++)] = row;
    }
  }
  return true;
}

// Where in the work list and in the outputs a piece of work belongs.
struct Piece {
  std::int64_t node;
  RowList rows;
  std::int32_t first_feature;
  std::int32_t features;
};

template <class Bin>
class Builder {
 public:
  explicit Builder(const HistogramProblem& problem)
      : problem_(problem),
        bins_(static_cast<const Bin*>(problem.bins.data)),
        // All values that a byte can have need no check; two bytes have been checked.
        span_(sizeof(Bin) == 1 ? 256 : problem.bin_count) {}

  // Adds up a piece in `sums`, which it clears first. Returns false for a bin that is out of range.
  bool add_up(const Piece& piece, std::vector<Pair>& sums) const {
    sums.assign(static_cast<std::size_t>(piece.features) * static_cast<std::size_t>(span_), Pair{0, 0});
    Pair pairs[kBlockRows];
    std::int64_t rows[kBlockRows];
    for (std::int64_t first = piece.rows.begin; first < piece.rows.end; first += kBlockRows) {
      const std::int64_t count = std::min(kBlockRows, piece.rows.end - first);
      bool wild = false;  // its sums would run into each other
      for (std::int64_t i = 0; i < count; ++i) {
        rows[i] = piece.rows.at(first + i);
        const QuantizedGradient q = problem_.gradients[rows[i]];
        wild |= !on_grid(q);
        pairs[i] = Pair{q.gradient, q.hessian + (std::int64_t{1} << kCountShift)};
      }
      if (wild) return false;
      if (sizeof(Bin) > 1 && !all_inside(piece, rows, count)) return false;
      std::int32_t f = 0;
      for (; f + kSideBySide <= piece.features; f += kSideBySide) {
        add_block<kSideBySide>(piece, f, first, rows, pairs, count, sums.data());
      }
      for (; f < piece.features; ++f) add_block<1>(piece, f, first, rows, pairs, count, sums.data());
    }
    if (problem_.bin_count >= span_) return true;
    for (std::int32_t f = 0; f < piece.features; ++f) {
      const Pair* sum = sums.data() + std::int64_t{f} * span_;
      for (std::int32_t b = problem_.bin_count; b < span_; ++b) {
        if ((sum[b][1] >> kCountShift) != 0) return false;
      }
    }
    return true;
  }

  // Adds the sums of a piece to its place in the output.
  void flush(const Piece& piece, const std::vector<Pair>& sums, const HistogramArrays& out) const {
    constexpr std::int64_t kMask = (std::int64_t{1} << kCountShift) - 1;
    const std::int64_t bins = problem_.bin_count;
    for (std::int32_t f = 0; f < piece.features; ++f) {
      const Pair* sum = sums.data() + std::int64_t{f} * span_;
      const std::int64_t base = (piece.node * problem_.bins.features + piece.first_feature + f) * bins;
      for (std::int64_t b = 0; b < bins; ++b) {
        out.gradients[base + b] += sum[b][0];
        out.hessians[base + b] += sum[b][1] & kMask;
        out.counts[base + b] += static_cast<std::int32_t>(sum[b][1] >> kCountShift);
      }
    }
  }

 private:
  [[nodiscard]] const Bin* column(std::int32_t feature) const {
    return bins_ + feature * problem_.bins.feature_step;
  }

  bool all_inside(const Piece& piece, const std::int64_t* rows, std::int64_t count) const {
    int highest = 0;
    for (std::int32_t f = 0; f < piece.features; ++f) {
      const Bin* bins = column(piece.first_feature + f);
      for (std::int64_t i = 0; i < count; ++i) {
        highest = std::max(highest, int{bins[rows[i] * problem_.bins.row_step]});
      }
    }
    return highest < problem_.bin_count;
  }

  template <int Features>
  void add_block(const Piece& piece, std::int32_t feature, std::int64_t first, const std::int64_t* rows,
                 const Pair* pairs, std::int64_t count, Pair* sums) const {
    const Bin* bins[Features];
    Pair* sum[Features];
    for (int k = 0; k < Features; ++k) {
      bins[k] = column(piece.first_feature + feature + k);
      sum[k] = sums + std::int64_t{feature + k} * span_;
    }
    if (piece.rows.rows == nullptr && problem_.bins.row_step == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        const Pair pair = pairs[i];
        for (int k = 0; k < Features; ++k) sum[k][bins[k][first + i]] += pair;
      }
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const Pair pair = pairs[i];
      const std::int64_t at = rows[i] * problem_.bins.row_step;
      for (int k = 0; k < Features; ++k) sum[k][bins[k][at]] += pair;
    }
  }

  const HistogramProblem& problem_;
  const Bin* bins_;
  std::int64_t span_;
};

std::vector<Piece> cut(const HistogramProblem& problem, const NodeRows* sorted, int threads) {
  std::vector<Piece> pieces;
  for (std::int64_t node = 0; node < problem.nodes; ++node) {
    RowList all{nullptr, 0, problem.bins.rows};
    if (sorted != nullptr) {
      all = {sorted->rows.data(), sorted->starts[static_cast<std::size_t>(node)],
             sorted->starts[static_cast<std::size_t>(node) + 1]};
    }
    const std::int64_t rows = all.end - all.begin;
    const std::int64_t share = std::max(kBlockRows, (rows + threads - 1) / threads);
    const std::int64_t step = std::min(kMostRows, share);
    for (std::int64_t begin = all.begin; begin < all.end; begin += step) {
      const RowList part{all.rows, begin, std::min(begin + step, all.end)};
      for (std::int64_t f = 0; f < problem.bins.features; f += kSpanFeatures) {
        const std::int64_t features = std::min(kSpanFeatures, problem.bins.features - f);
        pieces.push_back({node, part, static_cast<std::int32_t>(f), static_cast<std::int32_t>(features)});
      }
    }
  }
  return pieces;
}

template <class Bin>
Outcome build(const HistogramProblem& problem, const NodeRows* sorted, const HistogramArrays& out,
              const Executor& executor) {
  const int threads = thread_count(executor);
  const std::vector<Piece> pieces = cut(problem, sorted, threads);
  const Builder<Bin> builder(problem);
  // A place for each thread that there will be: what a caller asks for may be far more than there is to do.
  const auto workers =
      std::min<std::size_t>(static_cast<std::size_t>(std::max(1, threads)), pieces.size() + 1);
  std::vector<std::vector<Pair>> sums(workers);
  std::atomic<bool> sound{true};
  std::mutex mutex;
  const bool finished = parallel_for(executor, threads, static_cast<std::int64_t>(pieces.size()), 1,
                                     [&](int worker, std::int64_t begin, std::int64_t end) {
                                       std::vector<Pair>& mine = sums[static_cast<std::size_t>(worker)];
                                       for (std::int64_t i = begin; i < end && sound; ++i) {
                                         const Piece& piece = pieces[static_cast<std::size_t>(i)];
                                         if (!builder.add_up(piece, mine)) {
                                           sound = false;
                                           return;
                                         }
                                         const std::lock_guard lock(mutex);
                                         builder.flush(piece, mine, out);
                                       }
                                     });
  if (!finished) return Outcome::interrupted;
  return sound ? Outcome::done : Outcome::bad_input;
}

}  // namespace

Outcome histogram(const HistogramProblem& problem, const HistogramArrays& out, const Executor& executor) {
  const std::int64_t entries = std::int64_t{problem.nodes} * problem.bins.features * problem.bin_count;
  std::fill_n(out.gradients, entries, 0);
  std::fill_n(out.hessians, entries, 0);
  std::fill_n(out.counts, entries, 0);
  NodeRows sorted;
  const bool listed = problem.node_ids != nullptr || problem.row_subset != nullptr || problem.nodes > 1;
  if (listed && !sort_by_node(problem, sorted)) return Outcome::bad_input;
  const NodeRows* rows = listed ? &sorted : nullptr;
  return problem.bins.type == BinType::uint8 ? build<std::uint8_t>(problem, rows, out, executor)
                                             : build<std::uint16_t>(problem, rows, out, executor);
}

Outcome subtract_histogram(const HistogramArrays& parent, const HistogramArrays& child, std::int64_t entries,
                           const HistogramArrays& out, const Executor& executor) {
  constexpr std::int64_t kPiece = 1 << 16;
  const bool finished = parallel_for(executor, thread_count(executor), entries, kPiece,
                                     [&](int, std::int64_t begin, std::int64_t end) {
                                       for (std::int64_t i = begin; i < end; ++i) {
                                         out.gradients[i] = parent.gradients[i] - child.gradients[i];
                                         out.hessians[i] = parent.hessians[i] - child.hessians[i];
                                         out.counts[i] = parent.counts[i] - child.counts[i];
                                       }
                                     });
  return finished ? Outcome::done : Outcome::interrupted;
}

}  // namespace isofold::cpu
