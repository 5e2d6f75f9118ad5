#include "cpu/row_fit.hpp"

#include <algorithm>
#include <cmath>

#include "algorithm/exact_blocks.hpp"
#include "cpu/counters.hpp"
#include "cpu/streaming.hpp"
#include "exact/rounded_quotient.hpp"

namespace isofold::cpu {
namespace {

// Blocks at least this long take their sums from the row's partial sums, shorter ones from their elements.
constexpr std::int64_t kLongBlock = 96;

double exact_mean(const ExactSums& sums, Format format) {
  tally(Count::exact_means);
  return exact_quotient(sums.total.value(), sums.weight.value(), format);
}

// The mean of `count` >= 1 loaded elements, rounded; `survey` is that of a chunk they belong to.
double mean_of(const double* values, const double* weights, std::int64_t count, const Survey& survey,
               Format format) {
  if (count == 1) return round_to(values[0], format);
  // pair_sum's lanes err by at most (count / 8 + 8)^2 operations' worth: the losses it gathers are themselves
  // sums.
  const double lane = static_cast<double>(count) / 8 + 8;
  const CertifiedSum total{pair_sum(values, weights, count), survey.total_error(lane * lane)};
  CertifiedSum weight{{static_cast<double>(count), 0.0}, 0.0};
  if (weights != nullptr) weight = {pair_sum(weights, nullptr, count), survey.weight_error(lane * lane)};
  return rounded_quotient(total, weight, format, [&] {
    ExactSums sums;
    sums.add(values, weights, count);
    return exact_mean(sums, format);
  });
}

void fill(const FitTarget& target, std::int64_t begin, std::int64_t end, double mean) {
  store_constant(target.out.fit, target.begin + begin, end - begin, target.bounds.clip(target.sign * mean));
}

// Writes the blocks that start at the vertices from `first` up to, but not including, `last`, which is a
// vertex. `values` and `weights` hold the elements from `origin` on; the fit is formed in `values`, where
// blocks of one element already have it. `long_mean(begin, end)` is asked for blocks of kLongBlock elements
// or more.
template <class LongMean>
void write_blocks(const FitTarget& target, const Survey& survey, const VertexMask& mask, std::int64_t first,
                  std::int64_t last, double* values, const double* weights, LongMean&& long_mean) {
  const double* end_of_values = values + (last - first);
  // Every run of points that are no vertices lies inside one block, which starts just before the run.
  for (std::int64_t hole = mask.next_hole(first, last); hole < last;) {
    const std::int64_t start = hole - 1;
    const std::int64_t end = mask.next(hole);
    double* block = values + (start - first);
    const double mean = end - start >= kLongBlock
                            ? long_mean(start, end)
                            : mean_of(block, weights != nullptr ? weights + (start - first) : nullptr,
                                      end - start, survey, target.format);
    std::fill(block, values + (end - first), mean);
    hole = mask.next_hole(end, last);
  }
  if (target.format.precision < 53) {
    for (double* value = values; value != end_of_values; ++value) *value = round_to(*value, target.format);
  }
  if (target.sign < 0 || target.bounds.bounded()) {
    for (double* value = values; value != end_of_values; ++value)
      *value = target.bounds.clip(target.sign * *value);
  }
  store(target.out.fit, target.begin + first, last - first, values);
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
      for (std::int64_t i = 0; i < length; ++i) flags[start + i] = static_cast<std::uint8_t>((bits >> i) & 1);
    }
  }
}

}  // namespace

void write_chunk_fit(Chunk* chunk, const std::uint32_t* mask, const FitTarget& target) {
  const VertexMask vertices(mask);
  const std::int64_t count = chunk->count();
  const std::int64_t last = vertices.previous(count - 1);
  flag_blocks(target, mask, 0, count, 0, last);
  if (!target.out.fit.present()) return;
  double* values = chunk->value_buffer();
  const double* weights = chunk->weights();
  const auto mean = [&](std::int64_t begin, std::int64_t end) {
    return mean_of(values + begin, weights != nullptr ? weights + begin : nullptr, end - begin,
                   chunk->survey(), target.format);
  };
  fill(target, last, count, mean(last, count));
  write_blocks(target, chunk->survey(), vertices, 0, last, values, weights, mean);
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
    load_values(row_, first, last - first, scratch->value_buffer());
    if (row_.weighted()) load_weights(row_, first, last - first, scratch->weight_buffer());
    write_blocks(target_, hull_.survey(chunk), hull_.mask(), first, last, scratch->value_buffer(),
                 row_.weighted() ? scratch->weight_buffer() : nullptr,
                 [&](std::int64_t from, std::int64_t to) { return mean_between_points(from, to); });
  }
  fill(target_, last, end, leaving(index));
}

}  // namespace isofold::cpu
