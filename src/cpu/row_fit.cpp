#include "cpu/row_fit.hpp"

#include <algorithm>
#include <cmath>

#include "algorithm/exact_blocks.hpp"
#include "cpu/counters.hpp"
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
double mean_of(const double* values, const double* weights, std::int64_t count, const Survey& survey, Format format) {
  if (count == 1) return round_to(values[0], format);
  // pair_sum's lanes err by at most (count / 8 + 8)^2 operations' worth: the losses it gathers are themselves sums.
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

// The loaded elements [begin, end) and, at the same positions, the vertices among them; begin is one.
struct LoadedBlocks {
  const double* values;
  const double* weights;
  VertexMask mask;
  std::int64_t origin;  // position of values[0]
  const Survey& survey;
};

void fill(const FitTarget& target, std::int64_t begin, std::int64_t end, double mean) {
  store_constant(target.out.fit, target.begin + begin, end - begin, target.bounds.clip(target.sign * mean));
}

// Writes the blocks that start at the vertices from `first` up to, but not including, `last`, which is a vertex.
// `long_mean(begin, end)` is asked for blocks of kLongBlock elements or more.
template <class LongMean>
void write_blocks(const FitTarget& target, const LoadedBlocks& blocks, std::int64_t first, std::int64_t last,
                  std::vector<double>* buffer, LongMean&& long_mean) {
  buffer->resize(static_cast<std::size_t>(last - first));
  double* fit = buffer->data();
  std::int64_t start = first;
  while (start < last) {
    const std::int64_t end = blocks.mask.next(start + 1);
    const std::int64_t length = end - start;
    const std::int64_t offset = start - blocks.origin;
    double mean;
    if (length == 1) {
      mean = round_to(blocks.values[offset], target.format);
    } else if (length >= kLongBlock) {
      mean = long_mean(start, end);
    } else {
      mean = mean_of(blocks.values + offset, blocks.weights != nullptr ? blocks.weights + offset : nullptr, length,
                     blocks.survey, target.format);
    }
    const double clipped = target.bounds.clip(target.sign * mean);
    for (std::int64_t i = start; i < end; ++i) fit[i - first] = clipped;
    start = end;
  }
  store(target.out.fit, target.begin + first, last - first, fit);
}

// Flags the vertices first .. last of the mask and clears the rest of [begin, end).
void flag_blocks(const FitTarget& target, const VertexMask& mask, std::int64_t begin, std::int64_t end,
                 std::int64_t first, std::int64_t last) {
  if (target.out.block_starts == nullptr) return;
  std::uint8_t* flags = target.out.block_starts + target.begin;
  std::fill(flags + begin, flags + end, std::uint8_t{0});
  for (std::int64_t i = first; i <= last; i = i < last ? mask.next(i + 1) : last + 1) flags[i] = 1;
}

}  // namespace

void write_chunk_fit(const Chunk& chunk, const std::uint32_t* mask, const FitTarget& target,
                     std::vector<double>* buffer) {
  const VertexMask vertices(mask);
  const std::int64_t count = chunk.count();
  const std::int64_t last = vertices.previous(count - 1);
  flag_blocks(target, vertices, 0, count, 0, last);
  if (!target.out.fit.present()) return;
  const LoadedBlocks blocks{chunk.values(), chunk.weights(), vertices, 0, chunk.survey()};
  const auto mean = [&](std::int64_t begin, std::int64_t end) {
    return mean_of(chunk.values() + begin, chunk.weights() != nullptr ? chunk.weights() + begin : nullptr, end - begin,
                   chunk.survey(), target.format);
  };
  write_blocks(target, blocks, 0, last, buffer, mean);
  fill(target, last, count, mean(last, count));
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
    const double rounding = 16 * kUnitRoundoff * kUnitRoundoff * (std::fabs(a.value.high) + std::fabs(b.value.high));
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

void RowFitWriter::write_chunk(std::int64_t chunk, Chunk* scratch, std::vector<double>* buffer) const {
  const std::int64_t begin = hull_.chunk_begin(chunk);
  const std::int64_t end = hull_.chunk_end(chunk);
  // The last segment that starts before the chunk's end; it is the chunk's own, or its leaving block covers the chunk.
  const Segment* segments = root_.segments;
  const std::int64_t index =
      std::upper_bound(segments, segments + root_.count, end - 1,
                       [](std::int64_t position, const Segment& s) { return position < s.first; }) -
      segments - 1;
  const bool own = segments[index].first >= begin;
  const std::int64_t first = own ? segments[index].first : end;
  const std::int64_t last = own ? segments[index].last : end;
  flag_blocks(target_, hull_.mask(), begin, end, first, own ? last : end - 1);
  if (!target_.out.fit.present()) return;
  const auto leaving = [&](std::int64_t i) { return leaving_means_[static_cast<std::size_t>(i)]; };
  if (first > begin) fill(target_, begin, first, leaving(own ? index - 1 : index));
  if (!own) return;
  if (last > first) {
    load_values(row_, first, last - first, scratch->value_buffer());
    if (row_.weighted()) load_weights(row_, first, last - first, scratch->weight_buffer());
    const LoadedBlocks blocks{scratch->value_buffer(), row_.weighted() ? scratch->weight_buffer() : nullptr,
                              hull_.mask(), first, hull_.survey(chunk)};
    write_blocks(target_, blocks, first, last, buffer,
                 [&](std::int64_t from, std::int64_t to) { return mean_between_points(from, to); });
  }
  fill(target_, last, end, leaving(index));
}

}  // namespace isofold::cpu
