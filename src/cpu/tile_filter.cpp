#include "cpu/tile_filter.hpp"

#include <algorithm>

#include "cpu/chunk.hpp"
#include "cpu/streaming.hpp"

namespace isofold::cpu {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

// The diagram at tile starts and at the end, in plain doubles.
struct Starts {
  const ScannedTiles& tiles;
  std::int64_t number;  // of tiles

  [[nodiscard]] double abscissa(std::int64_t t) const {
    return static_cast<double>(std::min(t * kTile, tiles.count));
  }
  [[nodiscard]] double height(std::int64_t t) const {
    return t == number ? tiles.total.high : tiles.before[t].high;
  }
};

// The line through two tile starts.
struct Edge {
  double height;
  double abscissa;
  double slope;

  [[nodiscard]] double at(double x) const { return height + slope * (x - abscissa); }
};

}  // namespace

TileFilter::TileFilter(std::int64_t chunk_size)
    : corners_(at(chunk_size / kTile + 2)), rising_(at(chunk_size / kTile / kTile + 1)) {}

// The hull of tile starts, roughly: what its turns get wrong costs time only. Tiles' sums are to their starts
// what values are to points, so the same tests of neighbours leave about a quarter. Returns the number of
// corners.
std::int64_t TileFilter::find_polyline(const ScannedTiles& tiles, std::int64_t count) {
  const Starts starts{tiles, count};
  std::int64_t size = 0;
  const std::int64_t words = (count + kTile - 1) / kTile;
  rising_words(tiles.sums, words, rising_.data());
  window_words(tiles.sums, words, rising_.data());
  const auto add = [&](std::int64_t t) {
    const double x = starts.abscissa(t);
    const double y = starts.height(t);
    for (; size >= 2; --size) {
      const std::int64_t a = corners_[at(size - 2)];
      const std::int64_t b = corners_[at(size - 1)];
      const double bx = starts.abscissa(b);
      const double by = starts.height(b);
      if ((bx - starts.abscissa(a)) * (y - by) > (by - starts.height(a)) * (x - bx)) break;
    }
    corners_[at(size++)] = static_cast<std::int32_t>(t);
  };
  rising_[0] |= 1U;
  for (std::int64_t w = 0; w < words; ++w) {
    const std::int64_t rest = count - w * kTile;
    std::uint32_t bits = rest < kTile ? rising_[at(w)] & ~(~0U << rest) : rising_[at(w)];
    for (; bits != 0; bits &= bits - 1) add(w * kTile + __builtin_ctz(bits));
  }
  add(count);
  return size;
}

// With A the magnitude and u = 2^-53: a tile start's height is off by u A and what the pair's error is, far
// less; the slope of an edge by 4 u of itself and by what its ends are; so the edge over any point between
// its ends by 3 u A for these and 5 u A for its arithmetic. A point's prefix sum adds 31 additions, each off
// by u A at most, and the difference one more. 45 u A in all; 2^-46 A is 128 u, for the rounding of A and of
// the bound, too. Products underflow by 2^-1074 at most, times an abscissa where it is the slope's.
bool TileFilter::choose(const ScannedTiles& tiles, std::uint32_t* candidates, double* prefix) {
  const std::int64_t number = tiles.values.number;
  const std::int64_t corners = find_polyline(tiles, number);
  if (2 * corners > number) return false;
  const Starts starts{tiles, number};
  const double slack = 0x1p-46 * tiles.magnitude + 0x1p-1000;
  for (std::int64_t c = 0; c + 1 < corners; ++c) {
    const std::int64_t from = corners_[at(c)];
    const std::int64_t to = corners_[at(c + 1)];
    const double x = starts.abscissa(from);
    const double y = starts.height(from);
    const Edge edge{y, x, (starts.height(to) - y) / (starts.abscissa(to) - x)};
    double gap = 0.0;
    for (std::int64_t t = from; t < to; ++t) {
      const double end_gap = starts.height(t + 1) - edge.at(starts.abscissa(t + 1));
      const double lower = gap < end_gap ? gap : end_gap;
      gap = end_gap;
      candidates[t] = 0;
      if (lower > tiles.depths[t] + slack) continue;
      const double* values = tiles.values.tile(t);
      std::uint32_t rising = 0;
      rising_words(values, 1, &rising);
      window_words(values, 1, &rising);
      if (t == number - 1 && tiles.count % kTile != 0) rising &= ~(~0U << (tiles.count % kTile));
      if (rising == 0) continue;
      double sum = starts.height(t);
      const double start = starts.abscissa(t);
      double* sums = prefix + t * kTile;
      const std::int64_t length = 32 - __builtin_clz(rising);
      for (std::int64_t k = 0; k < length; ++k) {
        sums[k] = sum;
        sum += values[k];
      }
      std::uint32_t kept = 0;
      for (std::uint32_t bits = rising; bits != 0; bits &= bits - 1) {
        const int k = __builtin_ctz(bits);
        const double over = sums[k] - edge.at(start + k);
        kept |= over > slack ? 0U : bits & (~bits + 1);
      }
      candidates[t] = kept;
    }
  }
  candidates[0] &= ~1U;  // the first point needs no test
  prefix[0] = 0.0;
  prefix[tiles.count] = tiles.total.high;
  return true;
}

}  // namespace isofold::cpu
