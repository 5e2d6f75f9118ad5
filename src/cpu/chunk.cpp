#include "cpu/chunk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "algorithm/exact_blocks.hpp"
#include "cpu/counters.hpp"
#include "cpu/streaming.hpp"
#include "cpu/vector_lanes.hpp"

namespace isofold::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kUnderflow = 0x1p-1070;

// Turns the sums of `count` tiles into the sums before them, and returns that over all. What additions lose
// is gathered in plain doubles, which keeps the chain of dependent operations short, and joined every sixteen
// tiles: until then it stays below 17 u M, M the chunk's magnitudes and u = 2^-53, and its k-th addition errs
// by (k + 3) u^2 M, 190 u^2 M in all, where sixteen of survey.cpp's operations grant 256 u^2 M.
DoubleDouble sum_before_tiles(DoubleDouble* tiles, std::int64_t count) {
  constexpr std::int64_t kStretch = 16;
  DoubleDouble running;
  for (std::int64_t first = 0; first < count; first += kStretch) {
    double high = running.high;
    double low = running.low;
    for (std::int64_t t = first; t < std::min(first + kStretch, count); ++t) {
      const TwoTerms before = two_sum(high, low);
      const TwoTerms sum = two_sum(high, tiles[t].high);
      low += sum.low + tiles[t].low;
      high = sum.high;
      tiles[t] = {before.high, before.low};
    }
    const TwoTerms joined = two_sum(high, low);
    running = {joined.high, joined.low};
  }
  return running;
}

}  // namespace

Chunk::Chunk(std::int64_t chunk_size, bool weighted) : weighted_(weighted), filter_(chunk_size) {
  const auto size = static_cast<std::size_t>(chunk_size);
  values_.resize(size + 2 * kPad + kTile);
  candidates_.resize(size / kTile + 1);
  total_prefix_.resize(size + 1);
  stack_.resize(size + 1);
  if (!weighted) {
    tile_totals_.resize(size / kTile + 1);
    depths_.resize(size / kTile + 1);
    tile_sums_.resize(size / kTile + 2 * kPad + kTile);
  }
  if (weighted) {
    weights_.resize(size);
    products_.resize(size);
    weight_prefix_.resize(size + 1);
  }
}

bool Chunk::load(const RowView& row, std::int64_t first, std::int64_t count) {
  count_ = count;
  survey_ = {};
  const double* in_place = values_in_place(row, first);
  double* values = values_.data() + kPad;
  if (in_place != nullptr && !weighted_ && count >= kLanes * kTile) {
    source_ = in_place;
    copy_edges();
  } else {
    values[-2] = values[-1] = -kInfinity;
    load_values(row, first, count, values);
    std::fill(values + count, values + (count + kTile) / kTile * kTile + 1, kInfinity);
    source_ = values;
    padded_ = {values, values, values + (words() - 1) * kTile, words()};
  }
  scanned_ = !weighted_ && count >= kLanes * kTile && scan();
  if (scanned_) {
    precise_.reset(source_, nullptr, count, survey_);
    return true;
  }
  const Statistics of_values = statistics(source_, count);
  survey_.allowed = of_values.finite;
  survey_.value_unit = of_values.unit;
  survey_.lowest = of_values.lowest;
  survey_.highest = of_values.highest;
  if (!weighted_) {
    survey_.magnitude = of_values.magnitude;
    survey_.weight = static_cast<double>(count);
    survey_.weight_unit.see(1.0);
    precise_.reset(source_, nullptr, count, survey_);
    return survey_.allowed;
  }
  load_weights(row, first, count, weights_.data());
  const Statistics of_weights = statistics(weights_.data(), count);
  survey_.allowed = survey_.allowed && of_weights.finite && (count == 0 || of_weights.lowest > 0);
  survey_.weight = of_weights.magnitude;
  survey_.weight_unit = of_weights.unit;
  multiply(values, weights_.data(), count, products_.data());
  survey_.magnitude = statistics(products_.data(), count).magnitude;
  precise_.reset(values, weights_.data(), count, survey_);
  return survey_.allowed;
}

void Chunk::copy_edges() {
  const std::int64_t last = (words() - 1) * kTile;
  first_tile_[0] = first_tile_[1] = -kInfinity;
  std::copy_n(source_, kTile + 1, first_tile_ + kPad);
  std::fill(std::copy(source_ + last - kPad, source_ + count_, last_tile_), std::end(last_tile_), kInfinity);
  padded_ = {first_tile_ + kPad, source_, last_tile_ + kPad, words()};
}

// Surveys the values and sums their tiles, in one pass. Returns whether that is worth anything: finite
// values, no sum of which overflows.
bool Chunk::scan() {
  const std::int64_t full = count_ / kTile;
  const std::int64_t rest = count_ % kTile;
  Statistics of_values = scan_tiles(values(), full, tile_totals_.data(), depths_.data());
  if (rest != 0) {
    const double* values = this->values() + full * kTile;
    const Statistics of_rest = statistics(values, rest);
    of_values.magnitude += of_rest.magnitude;
    of_values.lowest = std::min(of_values.lowest, of_rest.lowest);
    of_values.highest = std::max(of_values.highest, of_rest.highest);
    of_values.unit.merge(of_rest.unit);
    tile_totals_[static_cast<std::size_t>(full)] = pair_sum(values, nullptr, rest);
    depths_[static_cast<std::size_t>(full)] = kInfinity;  // its chord is narrower than a tile
  }
  if (!(of_values.magnitude < 0x1p900)) return false;
  survey_.magnitude = of_values.magnitude;
  survey_.value_unit = of_values.unit;
  survey_.lowest = of_values.lowest;
  survey_.highest = of_values.highest;
  survey_.weight = static_cast<double>(count_);
  survey_.weight_unit.see(1.0);
  double* sums = tile_sums_.data() + kPad;
  sums[-2] = sums[-1] = -kInfinity;
  for (std::int64_t t = 0; t < words(); ++t) sums[t] = tile_totals_[static_cast<std::size_t>(t)].high;
  std::fill(sums + words(), tile_sums_.data() + tile_sums_.size(), kInfinity);
  total_ = sum_before_tiles(tile_totals_.data(), words());
  return true;
}

void Chunk::find_candidates() {
  const std::int64_t last = padded_.number - 1;
  const auto each_part = [&](auto&& find) {
    find(padded_.first, 1, candidates_.data());
    if (last == 0) return;
    find(padded_.inner + kTile, last - 1, candidates_.data() + 1);
    find(padded_.last, 1, candidates_.data() + last);
  };
  each_part(rising_words);
  if (!weighted_) each_part(window_words);
  candidates_[0] &= ~1U;  // the first point needs no test
  if (count_ % kTile != 0) candidates_[static_cast<std::size_t>(words() - 1)] &= ~(~0U << (count_ % kTile));
}

std::int64_t Chunk::number_of_candidates() const {
  std::int64_t number = 0;
  for (std::int64_t i = 0; i < words(); ++i)
    number += __builtin_popcount(candidates_[static_cast<std::size_t>(i)]);
  return number;
}

void Chunk::find_hull(std::uint32_t* mask) {
  mask[0] |= 1U;
  if (survey_.lowest == survey_.highest) return;  // constant: one block
  const ScannedTiles tiles{
      padded_,        count_,           tile_totals_.data(), total_, tile_sums_.data() + kPad,
      depths_.data(), survey_.magnitude};
  const bool filtered = scanned_ && filter_.choose(tiles, candidates_.data(), total_prefix_.data());
  if (!filtered) find_candidates();
  const std::int64_t candidates = number_of_candidates();
  if (candidates == 0) return;  // falling: one block
  if (candidates == count_ - 1) {
    // Every neighbour rises: every point is a vertex, whatever the weights.
    for (std::int64_t i = 0; i < words(); ++i) mask[i] |= candidates_[static_cast<std::size_t>(i)];
    return;
  }
  if (weighted_ ? chain<true>(mask, false) : chain<false>(mask, filtered)) return;
  tally(Count::exact_chunks);
  for (const ExactBlock& block : exact_blocks(values(), weights(), count_)) {
    mask[block.start / kTile] |= 1U << (block.start % kTile);
  }
}

// The monotone chain (Andrew 1979) over the candidates, turns decided in plain doubles relative to the
// chunk's start.
//
// With A the sum of |w y| and W that of w, n elements and u = 2^-53: a prefix sum errs by at most n u A
// (weights: n u W), a difference of two by 2 (n + 1) u A, and the determinant (W_ab S_bd - S_ab W_bd) by
// (W_ab + W_bd) e_S + (|S_ab| + |S_bd|) e_W + 2 e_S e_W + 2 u (|p1| + |p2|). Without weights |p1| + |p2| is
// at most 2 A (W_ab + W_bd) and all of it is below 8 (n + 8) u A (W_ab + W_bd). Bounds are doubled for their
// own rounding. If A W is below 2^51 of the products' units every quantity is an integer below 2^53 units and
// nothing is rounded. The filter's prefix sums err by 40 u A, which is less: its chunks have 256 elements or
// more.
template <bool Weighted>
bool Chunk::chain(std::uint32_t* mask, bool filtered) {
  const double magnitude = survey_.magnitude;
  const double weight = survey_.weight;
  const double steps = static_cast<double>(count_) + 8.0;
  const bool exact = survey_.unit() >= -1074 &&
                     exact_as_double(4 * magnitude * weight, survey_.unit() + survey_.weight_unit.exponent());
  const bool certified = magnitude * weight < 0x1p1000 && (Weighted || magnitude > 0x1p-900);
  const double total_error = certified ? (Weighted ? 4 : 8) * steps * kUnitRoundoff * magnitude : kInfinity;
  const double weighted_total_error = total_error + steps * kUnderflow;
  const double weight_error = 4 * steps * kUnitRoundoff * weight;
  if (!filtered) prefix_sums(Weighted ? products_.data() : values(), count_, total_prefix_.data());
  if constexpr (Weighted) prefix_sums(weights_.data(), count_, weight_prefix_.data());

  const double* totals = total_prefix_.data();
  const double* weights = weight_prefix_.data();
  std::int32_t* stack = stack_.data();
  std::int64_t size = 0;
  stack[size++] = 0;
  // Adds point d after removing what lies on or above its chords; false where only long accumulators can
  // tell.
  const auto add_point = [&](std::int64_t d) {
    while (size >= 2) {
      const std::int64_t a = stack[size - 2];
      const std::int64_t b = stack[size - 1];
      const double s_ab = totals[b] - totals[a];
      const double s_bd = totals[d] - totals[b];
      double determinant;
      double bound = 0.0;
      if constexpr (Weighted) {
        const double w_ab = weights[b] - weights[a];
        const double w_bd = weights[d] - weights[b];
        const double rise = w_ab * s_bd;
        const double fall = s_ab * w_bd;
        determinant = rise - fall;
        if (!exact) {
          bound =
              2 * ((w_ab + w_bd) * weighted_total_error + (std::fabs(s_ab) + std::fabs(s_bd)) * weight_error +
                   2 * weighted_total_error * weight_error +
                   2 * kUnitRoundoff * (std::fabs(rise) + std::fabs(fall))) +
              kUnderflow;
        }
      } else {
        determinant = static_cast<double>(b - a) * s_bd - s_ab * static_cast<double>(d - b);
        if (!exact) bound = static_cast<double>(d - a) * total_error;
      }
      if (determinant > bound) break;
      if (!(determinant < -bound) && !exact) {
        const std::optional<bool> up = precise_.bends_up(a, b, d);
        if (!up) return false;
        if (*up) break;
      }
      --size;
    }
    stack[size++] = static_cast<std::int32_t>(d);
    return true;
  };

  for (std::int64_t first = 0; first < count_; first += kTile) {
    std::uint32_t bits = candidates_[static_cast<std::size_t>(first / kTile)];
    for (; bits != 0; bits &= bits - 1) {
      if (!add_point(first + __builtin_ctz(bits))) return false;
    }
  }
  if (!add_point(count_)) return false;
  for (std::int64_t i = 0; i + 1 < size; ++i) mask[stack[i] / kTile] |= 1U << (stack[i] % kTile);
  return true;
}

// Entry t of out: the pair sum over the tiles before t. Returns that over all.
DoubleDouble Chunk::prefix_tiles(const double* values, const double* weights, DoubleDouble* out) const {
  const std::int64_t full = count_ / kTile;
  const std::int64_t rest = count_ % kTile;
  pair_sums_of_tiles(values, weights, full, out);
  DoubleDouble running;
  for (std::int64_t t = 0; t < full; ++t) {
    const DoubleDouble tile = out[t];
    out[t] = running;
    running = running + tile;
  }
  if (rest == 0) return running;
  out[full] = running;
  const std::int64_t first = full * kTile;
  return running + pair_sum(values + first, weights != nullptr ? weights + first : nullptr, rest);
}

Chunk::Totals Chunk::tile_sums(DoubleDouble* totals, DoubleDouble* weights) const {
  if (scanned_) {
    std::copy_n(tile_totals_.data(), words(), totals);
    return {total_, {}};
  }
  Totals sums;
  sums.total = prefix_tiles(values(), this->weights(), totals);
  if (weights != nullptr) sums.weight = prefix_tiles(weights_.data(), nullptr, weights);
  return sums;
}

}  // namespace isofold::cpu
