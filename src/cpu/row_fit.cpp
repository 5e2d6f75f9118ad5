#include "cpu/row_fit.hpp"

#include <algorithm>
#include <cmath>

#include "algorithm/exact_blocks.hpp"
#include "cpu/counters.hpp"
#include "cpu/flag_bytes.hpp"
#include "cpu/lane_rows.hpp"
#include "cpu/streaming.hpp"
#include "cpu/vector_lanes.hpp"
#include "exact/rounded_quotient.hpp"

namespace isofold::cpu {
namespace {

// Blocks at least this long take their sums from the row's partial sums, shorter ones from their elements.
constexpr std::int64_t kLongBlock = 96;

double exact_mean(const ExactSums& sums, Format format) {
  tally(Count::exact_means);
  return exact_quotient(sums.total.value(), sums.weight.value(), format);
}

// Means of short blocks of one chunk.
class ShortMeans {
 public:
  ShortMeans(const Survey& survey, bool weighted, Format format)
      : total_error_(survey.total_error(1.0)),
        weight_error_(weighted ? survey.weight_error(1.0) : 0.0),
        in_lanes_(!weighted && survey.magnitude < 0x1p900 &&
                  (format.precision == 53 || format.precision == 24)),
        format_(format) {}

  // Whether `of` may be asked for means of several short blocks at once.
  [[nodiscard]] bool in_lanes() const { return in_lanes_; }

  // The means of eight blocks without weights: kLaneRow elements can be read from each start on.
  void of(const double* values, const LaneBlocks& blocks, double* means) const {
    for (std::uint32_t left = lane_means(values, blocks, format_, 64.0 * total_error_, means); left != 0;
         left &= left - 1) {
      const int lane = __builtin_ctz(left);
      means[lane] = of(values + blocks.starts[lane], nullptr, static_cast<std::int64_t>(blocks.counts[lane]));
    }
  }

  // The mean of `count` >= 1 loaded elements, rounded; weights may be null.
  [[nodiscard]] double of(const double* values, const double* weights, std::int64_t count) const {
    if (count == 1) return round_to(values[0], format_);
    // pair_sum's lanes err by at most (count / 8 + 8)^2 operations' worth: the losses it gathers are
    // themselves sums. Those of short_sum err by less than 8^2 operations' worth.
    const double lane = static_cast<double>(count) / 8 + 8;
    const double operations = lane * lane;
    const bool few = weights == nullptr && count <= kFew;
    const CertifiedSum total{few ? short_sum(values, count) : pair_sum(values, weights, count),
                             total_error_ * operations};
    CertifiedSum weight{{static_cast<double>(count), 0.0}, 0.0};
    if (weights != nullptr) weight = {pair_sum(weights, nullptr, count), weight_error_ * operations};
    const RoundedValue fast = certified_quotient(total, weight, format_);
    if (fast.decided) return fast.value;
    if (weights == nullptr && total.exact()) {
      const RoundedValue midpoint = whole_quotient(total.value, weight.value.high, format_);
      if (midpoint.decided) return midpoint.value;
    }
    return rounded_quotient(total, weight, format_, [&] {
      ExactSums sums;
      sums.add(values, weights, count);
      return exact_mean(sums, format_);
    });
  }

 private:
  static constexpr std::int64_t kFew = 16;

  // The quotient of an exact pair and a small integer, where it is q + c without a remainder: what decides
  // midpoints, which are common in short blocks. high - q count is exact.
  static RoundedValue whole_quotient(const DoubleDouble& sum, double count, Format format) {
    const double q = sum.high / count;
    if (!(std::fabs(q) > 0x1p-900 && std::fabs(sum.high) < 0x1p900)) return {0.0, false};
    const TwoTerms rest = two_sum(std::fma(-q, count, sum.high), sum.low);
    if (format.precision != 53) return {round_to(q, format), rest.high == 0.0 && rest.low == 0.0};
    const double correction = rest.high / count;
    return {q + correction, rest.low == 0.0 && std::fma(-correction, count, rest.high) == 0.0};
  }

  // One lane: the k-th addition of what additions lose errs by k u^2 M, M the magnitudes, 136 u^2 M in all,
  // where an operation's worth is 16 u^2 M.
  static DoubleDouble short_sum(const double* values, std::int64_t count) {
    double high = values[0];
    double low = 0.0;
    for (std::int64_t i = 1; i < count; ++i) {
      const TwoTerms sum = two_sum(high, values[i]);
      high = sum.high;
      low += sum.low;
    }
    const TwoTerms normalized = two_sum(high, low);
    return {normalized.high, normalized.low};
  }

  double total_error_;  // of one operation
  double weight_error_;
  bool in_lanes_;
  Format format_;
};

void fill(const FitTarget& target, std::int64_t begin, std::int64_t end, double mean) {
  store_constant(target.out.fit, target.begin + begin, end - begin, target.bounds.clip(target.sign * mean));
}

// Writes blocks of several elements, in their order, and what lies between them: elements that are blocks of
// their own. Short blocks without weights wait until eight of them have their means found side by side.
class BlockWriter {
 public:
  // All positions count from the first element of `values`, `weights` and `fit`; `fit` may be `values`.
  BlockWriter(const ShortMeans& means, const double* values, const double* weights, double* fit,
              std::int64_t count)
      : means_(means), values_(values), weights_(weights), fit_(fit), count_(count) {}

  void add_short(std::int64_t start, std::int64_t end) {
    if (!means_.in_lanes() || end - start > kLaneRow || start + kLaneRow > count_) {
      const double* weights = weights_ != nullptr ? weights_ + start : nullptr;
      add(start, end, means_.of(values_ + start, weights, end - start));
      return;
    }
    waiting_.starts[waiting_count_] = start;
    waiting_.counts[waiting_count_] = static_cast<double>(end - start);
    places_[waiting_count_++] = length_;
    add(start, end, 0.0);
    if (waiting_count_ == kLanes) write();
  }

  void add(std::int64_t start, std::int64_t end, double mean) {
    blocks_[length_++] = {start, end, mean};
    if (waiting_count_ == 0 || length_ == kMost) write();
  }

  void finish() {
    write();
    copy(count_);
  }

 private:
  struct Block {
    std::int64_t start;
    std::int64_t end;
    double mean;
  };
  static constexpr int kMost = 2 * kLanes;
  static constexpr int kFew = 3;  // so many take as long one after the other

  void write() {
    find_means();
    for (int i = 0; i < length_; ++i) {
      const Block& block = blocks_[i];
      copy(block.start);
      fill(block.start, block.end, block.mean + 0.0);
      written_ = block.end;
    }
    length_ = 0;
  }

  void find_means() {
    if (waiting_count_ == 0) return;
    double means[kLanes];
    if (waiting_count_ >= kFew) {
      for (int i = waiting_count_; i < kLanes; ++i) {
        waiting_.starts[i] = waiting_.starts[0];
        waiting_.counts[i] = waiting_.counts[0];
      }
      means_.of(values_, waiting_, means);
    } else {
      for (int i = 0; i < waiting_count_; ++i) {
        means[i] =
            means_.of(values_ + waiting_.starts[i], nullptr, static_cast<std::int64_t>(waiting_.counts[i]));
      }
    }
    for (int i = 0; i < waiting_count_; ++i) blocks_[places_[i]].mean = means[i];
    waiting_count_ = 0;
  }

  // Adding +0.0 makes every zero a positive one.
  void copy(std::int64_t end) {
    if (fit_ == values_) return;
    for (std::int64_t i = written_; i < end; ++i) fit_[i] = values_[i] + 0.0;
  }

  // Eight at a time, without a loop, where what is written too much is written again and none of it is a
  // value still to be read.
  void fill(std::int64_t start, std::int64_t end, double mean) {
    if (end - start > kLaneRow || start + kLaneRow > count_ || fit_ == values_) {
      std::fill(fit_ + start, fit_ + end, mean);
      return;
    }
    std::fill_n(fit_ + start, kLanes, mean);
    if (end - start > kLanes) std::fill_n(fit_ + start + kLanes, kLanes, mean);
  }

  const ShortMeans& means_;
  const double* values_;
  const double* weights_;
  double* fit_;
  std::int64_t count_;
  std::int64_t written_ = 0;
  Block blocks_[kMost];
  int length_ = 0;
  LaneBlocks waiting_;
  int places_[kLanes];  // in blocks_
  int waiting_count_ = 0;
};

// Writes the blocks that start at the vertices from `first` up to, but not including, `last`, which is a
// vertex. `values` and `weights` hold the elements from `first` on; the fit is formed in `buffer`, which may
// be `values`, where it cannot be formed in place. `long_mean(begin, end)` is asked for blocks of kLongBlock
// elements or more.
template <class LongMean>
void write_blocks(const FitTarget& target, const Survey& survey, const VertexMask& mask, std::int64_t first,
                  std::int64_t last, const double* values, const double* weights, double* buffer,
                  LongMean&& long_mean) {
  const std::int64_t count = last - first;
  const ShortMeans means(survey, weights != nullptr, target.format);
  double* direct = fit_in_place(target);
  double* fit = direct != nullptr ? direct + first : buffer;
  BlockWriter writer(means, values, weights, fit, count);
  // Every run of points that are no vertices lies inside one block, which starts just before the run.
  for (std::int64_t hole = mask.next_hole(first, last); hole < last;) {
    const std::int64_t start = hole - 1;
    const std::int64_t end = mask.next(hole);
    if (end - start >= kLongBlock) {
      writer.add(start - first, end - first, long_mean(start, end));
    } else {
      writer.add_short(start - first, end - first);
    }
    hole = mask.next_hole(end, last);
  }
  writer.finish();
  if (direct == nullptr) store_fit(target, first, count, fit);
}

// Flags the vertices first .. last of the mask and clears the rest of [begin, end); begin is the start of a
// word.
void flag_blocks(const FitTarget& target, const std::uint32_t* mask, std::int64_t begin, std::int64_t end,
                 std::int64_t first, std::int64_t last) {
  if (target.out.block_starts == nullptr) return;
  std::uint8_t* flags = target.out.block_starts + target.begin;
  for (std::int64_t start = begin; start < end; start += kTile) {
    const std::int64_t length = std::min(kTile, end - start);
    std::uint32_t bits = mask[start / kTile];
    if (first > start) bits = first - start < kTile ? bits & (~0U << (first - start)) : 0;
    if (last < start + kTile - 1) bits = last >= start ? bits & (~0U >> (kTile - 1 - (last - start))) : 0;
    if (bits == 0 || bits == ~0U) {
      std::fill_n(flags + start, length, static_cast<std::uint8_t>(bits & 1));
    } else {
      std::int64_t i = 0;
      for (; i + 8 <= length; i += 8) write_flag_bytes(bits >> i, flags + start + i);
      for (; i < length; ++i) flags[start + i] = static_cast<std::uint8_t>((bits >> i) & 1);
    }
  }
}

}  // namespace

double* fit_in_place(const FitTarget& target) {
  const bool same = target.out.fit.type == DataType::float64 && target.sign > 0 && !target.bounds.bounded();
  return same ? static_cast<double*>(target.out.fit.data) + target.begin : nullptr;
}

void store_fit(const FitTarget& target, std::int64_t first, std::int64_t count, double* fit) {
  double* end = fit + count;
  if (target.format.precision < 53) {
    for (double* value = fit; value != end; ++value) *value = round_to(*value, target.format);
  }
  if (target.sign < 0 || target.bounds.bounded()) {
    for (double* value = fit; value != end; ++value) *value = target.bounds.clip(target.sign * *value);
  }
  store(target.out.fit, target.begin + first, count, fit);
}

void write_chunk_fit(Chunk* chunk, const std::uint32_t* mask, const FitTarget& target) {
  const VertexMask vertices(mask);
  const std::int64_t count = chunk->count();
  const std::int64_t last = vertices.previous(count - 1);
  flag_blocks(target, mask, 0, count, 0, last);
  if (!target.out.fit.present()) return;
  const double* values = chunk->values();
  const double* weights = chunk->weights();
  const ShortMeans means(chunk->survey(), weights != nullptr, target.format);
  const auto mean = [&](std::int64_t begin, std::int64_t end) {
    return means.of(values + begin, weights != nullptr ? weights + begin : nullptr, end - begin);
  };
  fill(target, last, count, mean(last, count));
  write_blocks(target, chunk->survey(), vertices, 0, last, values, weights, chunk->value_buffer(), mean);
}

RowFitWriter::RowFitWriter(const RowHull& hull, const RowView& row, const FitTarget& target)
    : hull_(hull),
      row_(row),
      target_(target),
      root_(hull.node(0)),
      leaving_means_(static_cast<std::size_t>(root_.count)) {}

double RowFitWriter::mean_between_points(std::int64_t begin, std::int64_t end) const {
  const Point from = hull_.point(begin);
  const Point to = hull_.point(end);
  // The differences' own rounding, which is nil where the points are exact.
  const auto subtract = [](const CertifiedSum& a, const CertifiedSum& b) {
    const double rounding =
        16 * kUnitRoundoff * kUnitRoundoff * (std::fabs(a.value.high) + std::fabs(b.value.high));
    const double error = a.error + b.error;
    return CertifiedSum{b.value - a.value, error == 0.0 ? 0.0 : error + rounding};
  };
  return rounded_quotient(subtract(from.total, to.total), subtract(from.weight, to.weight), target_.format,
                          [&] { return exact_mean(hull_.exact().sums(begin, end), target_.format); });
}

void RowFitWriter::find_leaving_mean(std::int64_t segment) {
  const std::int64_t begin = root_.segments[segment].last;
  const std::int64_t end = segment + 1 < root_.count ? root_.segments[segment + 1].first : root_.end;
  double mean;
  if (end - begin == 1) {
    double value;
    load_values(row_, begin, 1, &value);
    mean = round_to(value, target_.format);
  } else {
    mean = mean_between_points(begin, end);
  }
  leaving_means_[static_cast<std::size_t>(segment)] = mean;
}

void RowFitWriter::write_chunk(std::int64_t chunk, Chunk* scratch) const {
  const std::int64_t begin = hull_.chunk_begin(chunk);
  const std::int64_t end = hull_.chunk_end(chunk);
  // The last segment that starts before the chunk's end; it is the chunk's own, or its leaving block covers
  // the chunk.
  const Segment* segments = root_.segments;
  const std::int64_t index =
      std::upper_bound(segments, segments + root_.count, end - 1,
                       [](std::int64_t position, const Segment& s) { return position < s.first; }) -
      segments - 1;
  const bool own = segments[index].first >= begin;
  const std::int64_t first = own ? segments[index].first : end;
  const std::int64_t last = own ? segments[index].last : end;
  flag_blocks(target_, hull_.mask().words(), begin, end, first, own ? last : end - 1);
  if (!target_.out.fit.present()) return;
  const auto leaving = [&](std::int64_t i) { return leaving_means_[static_cast<std::size_t>(i)]; };
  if (first > begin) fill(target_, begin, first, leaving(own ? index - 1 : index));
  if (!own) return;
  if (last > first) {
    const double* values = values_in_place(row_, first);
    if (values == nullptr) {
      load_values(row_, first, last - first, scratch->value_buffer());
      values = scratch->value_buffer();
    }
    if (row_.weighted()) load_weights(row_, first, last - first, scratch->weight_buffer());
    write_blocks(target_, hull_.survey(chunk), hull_.mask(), first, last, values,
                 row_.weighted() ? scratch->weight_buffer() : nullptr, scratch->value_buffer(),
                 [&](std::int64_t from, std::int64_t to) { return mean_between_points(from, to); });
  }
  fill(target_, last, end, leaving(index));
}

}  // namespace isofold::cpu
