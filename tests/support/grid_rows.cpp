#include "support/grid_rows.hpp"

#include <algorithm>
#include <cmath>

namespace isofold_test {
namespace {

std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::int64_t kStretch = std::int64_t{1} << 20;  // noise keeps its width so long
constexpr std::int64_t kLongRow = std::int64_t{1} << 22;
constexpr std::int64_t kSteepWindow = std::int64_t{1} << 16;  // at the start of every eighth of a long row
constexpr double kSteepSlope = 8;
constexpr int kWidestNoise = 18;  // bits

// The trend of a row of `length` elements. It stays below 2^23 + 2^20 in magnitude: the rise is at most 2^22,
// steep windows add at most 9 * 2^19.
struct Trend {
  std::int64_t length;
  double slope;
  std::int64_t eighth;
  std::int64_t window;

  Trend(std::int64_t row_length, std::uint64_t hash)
      : length(row_length),
        slope(std::ldexp(1.0, length >= kLongRow ? 22 : static_cast<int>(hash % 23)) /
              static_cast<double>(length)),
        eighth(std::max<std::int64_t>(1, length / 8)),
        window(length >= kLongRow ? kSteepWindow : 0) {}

  [[nodiscard]] double level(std::int64_t at) const {
    const std::int64_t place = at % eighth;
    const std::int64_t falling = std::clamp<std::int64_t>(at - 5 * eighth, 0, eighth);
    const std::int64_t steep = at / eighth * window + std::min(place, window);
    return slope * static_cast<double>(at - 3 * falling) + kSteepSlope * static_cast<double>(steep) - 0x1p21;
  }
  // The trend is straight from `at` to here.
  [[nodiscard]] std::int64_t straight_until(std::int64_t at) const {
    const std::int64_t place = at % eighth;
    return at - place + (place < window ? window : eighth);
  }
};

}  // namespace

template <class Put>
void GridRows::for_each(std::int64_t begin, std::int64_t end, Put put) const {
  auto row = std::upper_bound(offsets_.begin(), offsets_.end(), begin) - 1;
  for (std::int64_t i = begin; i < end; ++row) {
    const std::int64_t first = *row;
    const std::int64_t row_end = std::min(row[1], end);
    if (i >= row_end) continue;  // an empty row
    const Trend trend(row[1] - first, mixed(seed_ ^ static_cast<std::uint64_t>(first)));
    while (i < row_end) {
      // A stretch of one noise and a straight trend, both laid down from where the stretch begins in the row.
      const std::int64_t at = i - first;
      const std::uint64_t stretch =
          mixed(mixed(seed_ + static_cast<std::uint64_t>(first)) + static_cast<std::uint64_t>(at / kStretch));
      const bool steep = at % trend.eighth < trend.window;
      const int bits = steep ? 3 : static_cast<int>(stretch % (kWidestNoise + 1));
      const std::int64_t stretch_end =
          std::min({row_end, first + trend.straight_until(at), first + (at / kStretch + 1) * kStretch});
      const std::int64_t straight_from =
          steep ? at - at % trend.eighth : at - at % trend.eighth + trend.window;
      const double level = trend.level(straight_from);
      const double slope = steep
                               ? trend.level(straight_from + 1) - level
                               : trend.slope * (at >= 5 * trend.eighth && at < 6 * trend.eighth ? -2.0 : 1.0);
      const auto half = static_cast<std::int32_t>(std::uint64_t{1} << bits >> 1);
      const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
      for (; i < stretch_end; ++i) {
        const double rising = slope * static_cast<double>(i - first - straight_from);
        const auto noise = static_cast<std::int32_t>(mixed(seed_ + static_cast<std::uint64_t>(i)) & mask);
        put(i, static_cast<std::int32_t>(level + rising) + noise - half);
      }
    }
  }
}

void GridRows::fill(std::int64_t begin, std::int64_t end, std::int32_t* out) const {
  for_each(begin, end, [&](std::int64_t i, std::int32_t k) { out[i - begin] = k; });
}

void GridRows::fill(std::int64_t begin, std::int64_t end, float* out) const {
  constexpr float kUnit = 0x1p-12F;
  static_assert(kGridExponent == -12);
  for_each(begin, end,
           [&](std::int64_t i, std::int32_t k) { out[i - begin] = static_cast<float>(k) * kUnit; });
}

}  // namespace isofold_test
