// The gradient of a fit: block averages over the blocks that the solver found (paper, Section 6, Gradient).
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "algorithm/bounds.hpp"
#include "algorithm/exact_blocks.hpp"
#include "algorithm/row_view.hpp"
#include "cpu/cpu.hpp"
#include "cpu/parallel.hpp"
#include "exact/gradient_in_weights.hpp"
#include "exact/rounded_quotient.hpp"

namespace isofold::cpu {
namespace {

constexpr std::int64_t kBuffer = 256;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

CertifiedSum integer(std::int64_t value) { return {{static_cast<double>(value), 0.0}, 0.0}; }

// A block of one row, [begin, end) in the batch, and everything its gradient needs.
class BlockGradient {
 public:
  BlockGradient(const IsotonicProblem& problem, ConstArray gradient, const IsotonicGradient& out)
      : problem_(problem),
        gradient_(gradient),
        out_(out),
        fit_format_(format_of(problem.values.type)),
        bounds_(problem.lower_bound, problem.upper_bound, fit_format_),
        bounded_(std::isfinite(problem.lower_bound) || std::isfinite(problem.upper_bound)) {}

  void write(std::int64_t begin, std::int64_t end) {
    begin_ = begin;
    end_ = end;
    sum();
    if (bounded_ && bounds_.outside(mean(fit_format_))) return fill(0.0);
    if (!finite_) return fill(kNaN);
    if (out_.values.present()) write_values();
    if (out_.weights.present()) write_weights();
  }

 private:
  [[nodiscard]] bool weighted() const { return problem_.weights.present(); }
  [[nodiscard]] CertifiedSum weight() const { return weighted() ? weight_.finish() : integer(end_ - begin_); }

  void fill(double value) {
    store_constant(out_.values, begin_, end_ - begin_, value);
    store_constant(out_.weights, begin_, end_ - begin_, value);
  }

  // Calls visit(first, count) over the block in pieces of a buffer.
  template <class Visit>
  void pieces(Visit&& visit) const {
    for (std::int64_t first = begin_; first < end_; first += kBuffer)
      visit(first, std::min(kBuffer, end_ - first));
  }

  void sum() {
    incoming_ = {};
    weight_ = {};
    total_ = {};
    exact_share_.reset();
    finite_ = true;
    one_value_ = true;
    const bool needs_mean = bounded_ || out_.weights.present();
    double first_value = 0.0;
    pieces([&](std::int64_t first, std::int64_t count) {
      load(gradient_, first, count, g_);
      if (weighted()) load(problem_.weights, first, count, w_);
      if (needs_mean) load(problem_.values, first, count, y_);
      if (needs_mean && first == begin_) first_value = y_[0];
      for (std::int64_t i = 0; i < count; ++i) {
        finite_ = finite_ && std::isfinite(g_[i]);
        incoming_.add(g_[i]);
        if (weighted()) weight_.add(w_[i]);
        if (!needs_mean) continue;
        one_value_ = one_value_ && y_[i] == first_value;
        if (weighted()) {
          total_.add_product(y_[i], w_[i]);
        } else {
          total_.add(y_[i]);
        }
      }
    });
  }

  // The long accumulators, for what the certificates cannot decide.
  [[nodiscard]] ExactSums exact_sums() {
    ExactSums sums;
    pieces([&](std::int64_t first, std::int64_t count) {
      load(problem_.values, first, count, y_);
      if (weighted()) load(problem_.weights, first, count, w_);
      sums.add(y_, weighted() ? w_ : nullptr, count);
    });
    return sums;
  }
  [[nodiscard]] SumAccumulator exact_incoming() {
    SumAccumulator sum;
    pieces([&](std::int64_t first, std::int64_t count) {
      load(gradient_, first, count, g_);
      for (std::int64_t i = 0; i < count; ++i) sum.add(g_[i]);
    });
    return sum;
  }

  [[nodiscard]] double mean(Format format) {
    return rounded_quotient(total_.finish(), weight(), format, [&] {
      const ExactSums sums = exact_sums();
      return exact_quotient(sums.total.value(), sums.weight.value(), format);
    });
  }
  [[nodiscard]] double share(Format format) {
    return rounded_quotient(incoming_.finish(), weight(), format, [&] {
      return exact_quotient(exact_incoming().value(), exact_sums().weight.value(), format);
    });
  }

  void write_values() {
    const Format format = format_of(out_.values.type);
    if (end_ - begin_ == 1)
      return store_constant(out_.values, begin_, 1, round_to(g_[0], format));  // w g / w
    if (!weighted()) return store_constant(out_.values, begin_, end_ - begin_, share(format));
    const CertifiedSum incoming = incoming_.finish();
    const CertifiedSum weight = this->weight();
    pieces([&](std::int64_t first, std::int64_t count) {
      double result[kBuffer];
      load(problem_.weights, first, count, w_);
      for (std::int64_t i = 0; i < count; ++i) result[i] = scaled_share(w_[i], incoming, weight, format);
      store(out_.values, first, count, result);
    });
  }

  // RN(w G / W).
  [[nodiscard]] double scaled_share(double w, const CertifiedSum& incoming, const CertifiedSum& weight,
                                    Format format) {
    const TwoTerms high = two_product(w, incoming.value.high);
    const double low = w * incoming.value.low;
    const TwoTerms sum = quick_two_sum(high.high, high.low + low);
    const double size = std::fabs(sum.high);
    CertifiedSum numerator{{sum.high, sum.low}, 0.0};
    // Two roundings of terms below 2 u |w G|.
    numerator.error = w * incoming.error * 2 + 8 * kUnitRoundoff * kUnitRoundoff * size;
    if (size > 0x1p-900) {
      const RoundedValue fast = certified_quotient(numerator, weight, format);
      if (fast.decided) return fast.value;
    } else if (incoming.value.high == 0.0 && incoming.exact()) {
      return 0.0;
    }
    if (incoming.exact() && weight.exact()) {
      return exact_quotient(product(exact_double(w), exact_pair(incoming.value)), exact_pair(weight.value),
                            format);
    }
    // Summed once a block, however many of its elements come here: else a long block would take quadratic
    // time.
    if (!exact_share_) {
      // The caller's piece of weights is still in w_; the sums go through the same buffer.
      double kept[kBuffer];
      std::copy_n(w_, kBuffer, kept);
      exact_share_.emplace(exact_incoming().value(), exact_sums().weight.value());
      std::copy_n(kept, kBuffer, w_);
    }
    return exact_quotient(product(exact_double(w), exact_share_->first), exact_share_->second, format);
  }

  // (y - RN64(S / W)) RN64(G / W) in float64, outside the promise (design: an approximation, the same on
  // every executor). A block of one value has no derivative in its weights.
  void write_weights() {
    if (one_value_) return store_constant(out_.weights, begin_, end_ - begin_, 0.0);
    const Format format = format_of(out_.weights.type);
    const double m = mean(kFloat64);
    const double q = share(kFloat64);
    pieces([&](std::int64_t first, std::int64_t count) {
      load(problem_.values, first, count, y_);
      for (std::int64_t i = 0; i < count; ++i) y_[i] = round_to(gradient_in_weights(y_[i], m, q), format);
      store(out_.weights, first, count, y_);
    });
  }

  const IsotonicProblem& problem_;
  ConstArray gradient_;
  IsotonicGradient out_;
  Format fit_format_;
  Bounds bounds_;
  bool bounded_;

  std::int64_t begin_ = 0;
  std::int64_t end_ = 0;
  SumBuilder incoming_;
  SumBuilder weight_;
  SumBuilder total_;
  // G and W from the long accumulators, once an element of the block has asked for them.
  using ExactSum = decltype(SumAccumulator{}.value());
  std::optional<std::pair<ExactSum, ExactSum>> exact_share_;
  bool finite_ = true;
  bool one_value_ = true;
  double y_[kBuffer] = {};
  double w_[kBuffer] = {};
  double g_[kBuffer] = {};
};

}  // namespace

Outcome isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                          ConstArray gradient, const IsotonicGradient& out, const Executor& executor) {
  // Pieces of the batch; who owns a block's start writes the whole block. Row starts are block starts.
  constexpr std::int64_t kPiece = 1 << 16;
  const std::int64_t total = problem.rows.total();
  const int threads = total <= kPiece ? 1 : thread_count(executor);
  const bool finished =
      parallel_for(executor, threads, total, kPiece, [&](int, std::int64_t begin, std::int64_t end) {
        BlockGradient block(problem, gradient, out);
        std::int64_t start = begin;
        while (start < end && block_starts[start] == 0) ++start;
        while (start < end) {
          std::int64_t stop = start + 1;
          while (stop < total && block_starts[stop] == 0) ++stop;
          block.write(start, stop);
          start = stop;
        }
      });
  return finished ? Outcome::done : Outcome::interrupted;
}

Outcome block_weights(const IsotonicProblem& problem, const std::uint8_t* block_starts, double* out,
                      const Executor& executor) {
  const std::int64_t total = problem.rows.total();
  std::int64_t block = 0;
  const bool finished = parallel_for(executor, 1, total, total, [&](int, std::int64_t, std::int64_t) {
    for (std::int64_t start = 0; start < total;) {
      std::int64_t stop = start + 1;
      while (stop < total && block_starts[stop] == 0) ++stop;
      if (!problem.weights.present()) {
        out[block] = static_cast<double>(stop - start);
      } else {
        SumBuilder sum;
        SumAccumulator exact;
        double buffer[kBuffer];
        const auto pieces = [&](auto&& visit) {
          for (std::int64_t first = start; first < stop; first += kBuffer) {
            const std::int64_t count = std::min(kBuffer, stop - first);
            load(problem.weights, first, count, buffer);
            for (std::int64_t i = 0; i < count; ++i) visit(buffer[i]);
          }
        };
        pieces([&](double w) { sum.add(w); });
        out[block] = rounded_quotient(sum.finish(), integer(1), kFloat64, [&] {
          pieces([&](double w) { exact.add(w); });
          return exact_quotient(exact.value(), exact_integer(1), kFloat64);
        });
      }
      ++block;
      start = stop;
    }
  });
  return finished ? Outcome::done : Outcome::interrupted;
}

}  // namespace isofold::cpu
