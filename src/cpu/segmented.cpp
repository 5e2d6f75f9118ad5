// Sums, dots and norms of segments. The batch is cut into pieces of equal length; a segment inside of one is
// done there, one that crosses their borders is put together from its parts. Parts are pairs of doubles with
// a proven error, and what they leave undecided is summed again in exact digits: how the batch is cut changes
// no bit.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "algorithm/row_view.hpp"
#include "cpu/cpu.hpp"
#include "cpu/dot_streams.hpp"
#include "cpu/parallel.hpp"
#include "exact/compensated_sum.hpp"
#include "exact/digit_accumulator.hpp"
#include "exact/rounded_number.hpp"

namespace isofold::cpu {
namespace {

constexpr std::int64_t kPiece = 1 << 15;  // elements; what a thread takes at a time
constexpr std::int64_t kThread = 1 << 17;
constexpr std::int64_t kStretch = 1 << 12;  // elements summed without merging lanes
constexpr std::int64_t kBuffer = 512;       // elements converted at a time, where that is needed

// A reduction's terms, as doubles: x, or x times y.
class Terms {
 public:
  explicit Terms(const SegmentReduction& reduction)
      : a_(reduction.a),
        b_(reduction.value == SegmentValue::norm ? reduction.a : reduction.b),
        root_(reduction.value == SegmentValue::norm),
        format_(format_of(reduction.out.type)) {}

  [[nodiscard]] CompensatedSum sum(std::int64_t begin, std::int64_t end) const {
    CompensatedSum all;
    for (std::int64_t first = begin; first < end; first += kStretch) {
      const CompensatedSum part = sum_stretch(first, std::min(kStretch, end - first));
      all = first == begin ? part : all + part;
    }
    return all;
  }

  // The value of the segment, where the sum's error leaves one; else undecided.
  [[nodiscard]] RoundedValue rounded(const CompensatedSum& sum, std::int64_t begin, std::int64_t end) const {
    if (!doubles()) return round(sum, 0.0);
    // Rather than look at every product, hope that none underflowed: where the answer hangs on it, look.
    const RoundedValue careful = round(sum, static_cast<double>(end - begin) * 0x1p-1070);
    if (careful.decided) return careful;
    const RoundedValue hopeful = round(sum, 0.0);
    if (!hopeful.decided || !may_underflow(begin, end)) return hopeful;
    return careful;
  }

  void add_exactly(std::int64_t begin, std::int64_t end, DigitAccumulator& digits) const {
    double x[kBuffer];
    double y[kBuffer];
    std::fill_n(y, kBuffer, 1.0);
    for (std::int64_t first = begin; first < end; first += kBuffer) {
      const std::int64_t count = std::min(kBuffer, end - first);
      load(a_, first, count, x);
      if (b_.present()) load(b_, first, count, y);
      for (std::int64_t i = 0; i < count; ++i) digits.add_product(x[i], y[i]);
    }
  }

  [[nodiscard]] double rounded(DigitAccumulator& digits) const {
    if (digits.special().any()) return digits.special().sum();
    return root_ ? rounded_root(digits.value(), format_) : rounded_number(digits.value(), format_);
  }

 private:
  [[nodiscard]] RoundedValue round(const CompensatedSum& sum, double more) const {
    return root_ ? round_root(sum, format_, more) : round_compensated(sum, format_, more);
  }

  // Whether products are of doubles, which may underflow.
  [[nodiscard]] bool doubles() const {
    return b_.present() && (a_.type == DataType::float64 || b_.type == DataType::float64);
  }

  [[nodiscard]] bool may_underflow(std::int64_t begin, std::int64_t end) const {
    double x[kBuffer];
    double y[kBuffer];
    for (std::int64_t first = begin; first < end; first += kBuffer) {
      const std::int64_t count = std::min(kBuffer, end - first);
      if (products_may_underflow(doubles_of(a_, first, count, x), doubles_of(b_, first, count, y), count)) {
        return true;
      }
    }
    return false;
  }

  // Where they are, or converted into the buffer.
  static const double* doubles_of(ConstArray array, std::int64_t first, std::int64_t count, double* buffer) {
    if (array.type == DataType::float64) return static_cast<const double*>(array.data) + first;
    load(array, first, count, buffer);
    return buffer;
  }

  template <class T>
  [[nodiscard]] CompensatedSum typed_sum(std::int64_t first, std::int64_t count) const {
    const T* a = static_cast<const T*>(a_.data) + first;
    return b_.present() ? dot_stream(a, static_cast<const T*>(b_.data) + first, count) : sum_stream(a, count);
  }

  [[nodiscard]] CompensatedSum sum_stretch(std::int64_t first, std::int64_t count) const {
    if (a_.type == b_.type || !b_.present()) {
      if (a_.type == DataType::float32) return typed_sum<float>(first, count);
      if (a_.type == DataType::float64) return typed_sum<double>(first, count);
    }
    double x[kBuffer];
    double y[kBuffer];
    CompensatedSum all;
    for (const std::int64_t end = first + count; first < end; first += kBuffer) {
      const std::int64_t length = std::min(kBuffer, end - first);
      load(a_, first, length, x);
      if (!b_.present()) {
        all = all + sum_stream(x, length);
      } else {
        load(b_, first, length, y);
        all = all + dot_stream(x, y, length);
      }
    }
    return all;
  }

  ConstArray a_;
  ConstArray b_;
  bool root_;
  Format format_;
};

class Batch {
 public:
  Batch(const SegmentReduction* reductions, std::int64_t count, const Rows& segments,
        const Executor& executor)
      : reductions_(reductions),
        segments_(segments),
        executor_(executor),
        threads_(threads_for(segments.total() * count, executor)) {
    for (std::int64_t r = 0; r < count; ++r) terms_.emplace_back(reductions[r]);
  }

  [[nodiscard]] bool run() {
    const std::int64_t total = segments_.total();
    const std::int64_t pieces = (total + kPiece - 1) / kPiece;
    if (total == 0) {
      for (std::int64_t s = 0; s < segments_.count; ++s)
        finish(s, std::vector<CompensatedSum>(terms_.size()));
      return true;
    }
    heads_.resize(static_cast<std::size_t>(pieces) * terms_.size());
    tails_.resize(heads_.size());
    if (!parallel_for(executor_, threads_, pieces, 1,
                      [&](int, std::int64_t piece, std::int64_t) { reduce_piece(piece, total); })) {
      return false;
    }
    return join_pieces(pieces, total);
  }

 private:
  // One for so many elements as take about as long as a thread does to start.
  static int threads_for(std::int64_t elements, const Executor& executor) {
    return static_cast<int>(std::min<std::int64_t>(thread_count(executor), 1 + elements / kThread));
  }

  [[nodiscard]] CompensatedSum* part(std::vector<CompensatedSum>& parts, std::int64_t piece) const {
    return parts.data() + static_cast<std::size_t>(piece) * terms_.size();
  }

  // The first segment that ends after the element; behind all that are empty there.
  [[nodiscard]] std::int64_t segment_of(std::int64_t element) const {
    if (segments_.offsets == nullptr) return element / segments_.length;
    const std::int64_t* ends = segments_.offsets + 1;
    return std::upper_bound(ends, ends + segments_.count, element) - ends;
  }

  void reduce_piece(std::int64_t piece, std::int64_t total) {
    const std::int64_t first = piece * kPiece;
    const std::int64_t last = std::min(first + kPiece, total);
    std::int64_t segment = piece == 0 ? 0 : segment_of(first);
    if (segments_.begin(segment) < first) {
      sum_all(first, std::min(segments_.end(segment), last), part(heads_, piece));
      ++segment;
    }
    std::vector<CompensatedSum> sums(terms_.size());
    for (; segment < segments_.count && segments_.end(segment) <= last; ++segment) {
      sum_all(segments_.begin(segment), segments_.end(segment), sums.data());
      finish(segment, sums);
    }
    if (segment < segments_.count && segments_.begin(segment) < last) {
      sum_all(segments_.begin(segment), last, part(tails_, piece));
    }
  }

  void sum_all(std::int64_t begin, std::int64_t end, CompensatedSum* sums) const {
    // Stretch by stretch, so that reductions that share an array find it in the cache.
    for (std::size_t r = 0; r < terms_.size(); ++r) sums[r] = {};
    for (std::int64_t first = begin; first < end; first += kStretch) {
      const std::int64_t stop = std::min(first + kStretch, end);
      for (std::size_t r = 0; r < terms_.size(); ++r) {
        const CompensatedSum part = terms_[r].sum(first, stop);
        sums[r] = first == begin ? part : sums[r] + part;
      }
    }
  }

  void store_one(std::size_t reduction, std::int64_t segment, double value) const {
    store(reductions_[reduction].out, segment, 1, &value);
  }

  // A segment that one thread has done, or of which the parts are together.
  void finish(std::int64_t segment, const std::vector<CompensatedSum>& sums) const {
    for (std::size_t r = 0; r < terms_.size(); ++r) {
      if (store_if_decided(r, segment, sums[r])) continue;
      DigitAccumulator digits;
      terms_[r].add_exactly(segments_.begin(segment), segments_.end(segment), digits);
      store_one(r, segment, terms_[r].rounded(digits));
    }
  }

  [[nodiscard]] bool store_if_decided(std::size_t r, std::int64_t segment, const CompensatedSum& sum) const {
    const RoundedValue found = terms_[r].rounded(sum, segments_.begin(segment), segments_.end(segment));
    if (found.decided) store_one(r, segment, found.value);
    return found.decided;
  }

  // Segments over several pieces: each starts as the tail of one. Returns false when stopped.
  [[nodiscard]] bool join_pieces(std::int64_t pieces, std::int64_t total) {
    std::int64_t piece = 0;
    while (piece < pieces) {
      const std::int64_t last = std::min((piece + 1) * kPiece, total);
      if (last == total) return true;
      const std::int64_t segment = segment_of(last);
      const std::int64_t end = segments_.end(segment);
      if (segments_.begin(segment) == last) {
        ++piece;
        continue;
      }
      const std::int64_t last_piece = (end - 1) / kPiece;
      for (std::size_t r = 0; r < terms_.size(); ++r) {
        CompensatedSum sum = part(tails_, piece)[r];
        for (std::int64_t p = piece + 1; p <= last_piece; ++p) sum = sum + part(heads_, p)[r];
        if (!store_if_decided(r, segment, sum) && !sum_exactly(r, segment, piece, last_piece)) return false;
      }
      piece = end == (last_piece + 1) * kPiece ? last_piece + 1 : last_piece;
    }
    return true;
  }

  // Over the threads.
  [[nodiscard]] bool sum_exactly(std::size_t r, std::int64_t segment, std::int64_t first_piece,
                                 std::int64_t last_piece) {
    std::vector<DigitAccumulator> digits(static_cast<std::size_t>(threads_));
    const std::int64_t count = last_piece - first_piece + 1;
    const bool finished =
        parallel_for(executor_, threads_, count, 1, [&](int worker, std::int64_t k, std::int64_t) {
          const std::int64_t piece = first_piece + k;
          const std::int64_t begin = std::max(segments_.begin(segment), piece * kPiece);
          const std::int64_t end = std::min(segments_.end(segment), (piece + 1) * kPiece);
          terms_[r].add_exactly(begin, end, digits[static_cast<std::size_t>(worker)]);
        });
    if (!finished) return false;
    for (std::size_t worker = 1; worker < digits.size(); ++worker) digits[0] += digits[worker];
    store_one(r, segment, terms_[r].rounded(digits[0]));
    return true;
  }

  const SegmentReduction* reductions_;
  const Rows& segments_;
  const Executor& executor_;
  int threads_;
  std::vector<Terms> terms_;
  std::vector<CompensatedSum> heads_;  // of a piece: what belongs to a segment begun before it
  std::vector<CompensatedSum> tails_;  // of a piece: what belongs to one begun in it and not ended there
};

}  // namespace

Outcome segment_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments,
                           const Executor& executor) {
  return Batch(reductions, count, segments, executor).run() ? Outcome::done : Outcome::interrupted;
}

}  // namespace isofold::cpu
