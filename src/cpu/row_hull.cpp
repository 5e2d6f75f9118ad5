#include "cpu/row_hull.hpp"

#include <algorithm>

#include "cpu/counters.hpp"
#include "cpu/streaming.hpp"

namespace isofold::cpu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

RowHull::RowHull(const RowView& row, std::int64_t chunk_size)
    : row_(row),
      chunk_size_(chunk_size),
      chunks_((row.length + chunk_size - 1) / chunk_size),
      mask_(at(row.length / kTile + 1)),
      tile_totals_(at((row.length + kTile - 1) / kTile)),
      tile_weights_(row.weighted() ? tile_totals_.size() : 0),
      chunk_totals_(at(chunks_ + 1)),
      chunk_weights_(row.weighted() ? at(chunks_ + 1) : 0),
      surveys_(at(chunks_)),
      segments_(at(chunks_)),
      segment_counts_(at(chunks_), 1),
      node_ends_(at(chunks_)),
      exact_(row, chunk_size) {}

std::int64_t RowHull::chunk_end(std::int64_t chunk) const {
  return std::min((chunk + 1) * chunk_size_, row_.length);
}

bool RowHull::add_chunk(std::int64_t chunk, Chunk* scratch) {
  const std::int64_t begin = chunk_begin(chunk);
  const std::int64_t end = chunk_end(chunk);
  if (!scratch->load(row_, begin, end - begin)) return false;
  scratch->find_hull(mask_.data() + begin / kTile);
  const Chunk::Totals sums = scratch->tile_sums(
      tile_totals_.data() + begin / kTile, row_.weighted() ? tile_weights_.data() + begin / kTile : nullptr);
  chunk_totals_[at(chunk)] = sums.total;
  if (row_.weighted()) chunk_weights_[at(chunk)] = sums.weight;
  surveys_[at(chunk)] = scratch->survey();
  segments_[at(chunk)] = {begin, mask().previous(end - 1)};
  node_ends_[at(chunk)] = end;
  return true;
}

void RowHull::place_chunks() {
  Survey row_survey;
  DoubleDouble total;
  DoubleDouble weight;
  for (std::int64_t j = 0; j <= chunks_; ++j) {
    const DoubleDouble own_total = chunk_totals_[at(j)];
    chunk_totals_[at(j)] = total;
    total = total + own_total;
    if (row_.weighted()) {
      const DoubleDouble own_weight = chunk_weights_[at(j)];
      chunk_weights_[at(j)] = weight;
      weight = weight + own_weight;
    }
    if (j < chunks_) row_survey.merge(surveys_[at(j)]);
  }
  // A point is a sum of chunk totals, of tile sums within its chunk and of elements within its tile; 64
  // covers the operations inside a tile and the last additions.
  const std::int64_t tiles = chunk_size_ / kTile;
  const auto operations = static_cast<double>(chunks_ + tiles + 64);
  total_error_ = row_survey.total_error(operations);
  weight_error_ = row_.weighted() ? row_survey.weight_error(operations) : 0.0;
}

int RowHull::levels() const {
  int levels = 0;
  while ((std::int64_t{1} << levels) < chunks_) ++levels;
  return levels;
}

std::int64_t RowHull::merges(int level) const {
  const std::int64_t half = std::int64_t{1} << level;
  return (chunks_ + half - 1) / (2 * half);  // the last node merges only if it has a right neighbour
}

Hull RowHull::node(std::int64_t chunk) const {
  return {segments_.data() + chunk, segment_counts_[at(chunk)], node_ends_[at(chunk)]};
}

BridgeWork RowHull::merge(int level, std::int64_t index) {
  const std::int64_t half = std::int64_t{1} << level;
  const std::int64_t left_chunk = index * 2 * half;
  const std::int64_t right_chunk = left_chunk + half;
  const Hull left = node(left_chunk);
  const Hull right = node(right_chunk);
  BridgeWork work;
  BridgeFinder<RowHull> finder(*this, left, right, &work);
  const Bridge bridge = finder.find(kWalkCap);
  segment_counts_[at(left_chunk)] =
      join_segments(segments_.data() + left_chunk, half, right, bridge.left, bridge.right);
  node_ends_[at(left_chunk)] = right.end;
  tally(Count::merges);
  tally(Count::walk_steps, work.walk_steps);
  tally(Count::searches, work.searched ? 1 : 0);
  tally(Count::search_turns, work.search_turns);
  return work;
}

Point RowHull::point(std::int64_t index) const {
  if (index == row_.length) {
    const CertifiedSum weight = row_.weighted() ? CertifiedSum{chunk_weights_.back(), weight_error_}
                                                : CertifiedSum{{static_cast<double>(index), 0.0}, 0.0};
    return {index, weight, {chunk_totals_.back(), total_error_}};
  }
  const std::int64_t chunk = index / chunk_size_;
  const std::int64_t tile = index / kTile;
  const std::int64_t inside = index % kTile;
  double buffer[kTile];
  double weights[kTile];
  const double* values = values_in_place(row_, tile * kTile);
  if (values == nullptr) {
    load_values(row_, tile * kTile, inside, buffer);
    values = buffer;
  }
  if (row_.weighted()) load_weights(row_, tile * kTile, inside, weights);
  const DoubleDouble total = (chunk_totals_[at(chunk)] + tile_totals_[at(tile)]) +
                             pair_sum(values, row_.weighted() ? weights : nullptr, inside);
  if (!row_.weighted()) return {index, {{static_cast<double>(index), 0.0}, 0.0}, {total, total_error_}};
  const DoubleDouble weight =
      (chunk_weights_[at(chunk)] + tile_weights_[at(tile)]) + pair_sum(weights, nullptr, inside);
  return {index, {weight, weight_error_}, {total, total_error_}};
}

bool RowHull::is_constant(std::int64_t begin, std::int64_t end) const {
  const Survey& first = surveys_[at(begin / chunk_size_)];
  for (std::int64_t j = begin / chunk_size_; j * chunk_size_ < end; ++j) {
    if (surveys_[at(j)].lowest != first.highest || surveys_[at(j)].highest != first.lowest) return false;
  }
  return true;
}

bool RowHull::is_vertex(const Point& a, const Point& b, const Point& d) const {
  return isofold::is_vertex(a, b, d, [&](const Point& from, const Point& at, const Point& to) {
    if (is_constant(from.index, to.index)) return false;
    tally(Count::exact_merge_turns);
    return mean_rises(exact_.sums(from.index, at.index), exact_.sums(at.index, to.index));
  });
}

}  // namespace isofold::cpu
