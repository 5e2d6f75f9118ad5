// Throws away, unread, most points of a chunk without weights that are no vertices. A point on or above a
// chord between two points of the diagram, its abscissa strictly between theirs, is none; any chord will do,
// so a polyline through tile starts is chosen in plain doubles, and only tiles that can dip below it are
// looked at again.
#pragma once

#include <cstdint>
#include <vector>

#include "exact/double_double.hpp"

namespace isofold::cpu {

// A chunk's values by tiles of 32. Each may be read from two elements before it to one after it; beyond the
// chunk's ends no window can disprove a vertex: -infinity before, infinity after.
struct PaddedTiles {
  const double* first;
  const double* inner;  // tile 0; only tiles between the first and the last are read there
  const double* last;
  std::int64_t number;

  [[nodiscard]] const double* tile(std::int64_t t) const {
    return t == 0 ? first : (t == number - 1 ? last : inner + 32 * t);
  }
};

// A scanned chunk.
struct ScannedTiles {
  PaddedTiles values;
  std::int64_t count;
  const DoubleDouble* before;  // of each tile: the sum over the tiles before it
  DoubleDouble total;
  const double* sums;    // of each tile, roughly; padded like values
  const double* depths;  // infinite where nothing is known
  double magnitude;      // sum of |values|, below 2^900
};

class TileFilter {
 public:
  explicit TileFilter(std::int64_t chunk_size);

  // Sets bit k of word t where point 32 t + k may be a vertex, and the prefix sums of these points and of the
  // end, in plain doubles: off by at most 40 u times the magnitude. Returns false, with nothing set, where
  // more than half of the tile starts are on the hull: most tiles would have to be looked at again, and the
  // tests of neighbours are cheaper.
  bool choose(const ScannedTiles& tiles, std::uint32_t* candidates, double* prefix);

 private:
  std::int64_t find_polyline(const ScannedTiles& tiles, std::int64_t count);

  std::vector<std::int32_t> corners_;  // tiles, the last one past the end
  std::vector<std::uint32_t> rising_;  // tile starts that their neighbours do not disprove
};

}  // namespace isofold::cpu
