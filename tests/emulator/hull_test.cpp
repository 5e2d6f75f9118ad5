// The pieces that a chunk's hull is found with: sweeps over a list of points, and the filter before them.
#include <cuda_runtime.h>
#include <gmpxx.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cuda/joints.cuh"
#include "cuda/sparse_hull.cuh"
#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using namespace isofold::cuda;
using isofold::DoubleDouble;

struct LatticePoint {
  std::int64_t x;
  std::int64_t y;
};

// Strictly below the chord from a to d.
bool below(const LatticePoint& a, const LatticePoint& b, const LatticePoint& d) {
  return static_cast<Int128>(b.x - a.x) * (d.y - b.y) > static_cast<Int128>(b.y - a.y) * (d.x - b.x);
}

// From the definition: both ends, and every point below all chords over it.
std::vector<std::uint16_t> hull_by_definition(const std::vector<LatticePoint>& points) {
  std::vector<std::uint16_t> hull;
  for (std::size_t b = 0; b < points.size(); ++b) {
    bool vertex = true;
    for (std::size_t a = 0; a < b && vertex; ++a) {
      for (std::size_t d = b + 1; d < points.size() && vertex; ++d) {
        vertex = below(points[a], points[b], points[d]);
      }
    }
    if (vertex) hull.push_back(static_cast<std::uint16_t>(b));
  }
  return hull;
}

// Walks, convex and concave arcs, runs on one line, arcs with some points lifted.
std::vector<LatticePoint> random_points(Random& random, std::int64_t count) {
  std::vector<LatticePoint> points;
  const auto kind = random.below(5);
  const std::int64_t reach = random.chance(0.5) ? 3 : 1000;
  LatticePoint at{0, 0};
  for (std::int64_t i = 0; i < count; ++i) {
    points.push_back(at);
    const std::int64_t step = random.chance(0.5) ? 1 : random.between(1, 9);
    std::int64_t slope = random.between(-reach, reach);
    if (kind == 1) slope = i;
    if (kind == 2) slope = -i;
    if (kind == 3) slope = i / 10;
    if (kind == 4) slope = i + (random.chance(0.2) ? 5 : 0);
    at.x += step;
    at.y += step * slope;
  }
  return points;
}

using Sweeps = OnDevice;

TEST_F(Sweeps, OfAWarpFindTheHull) {
  Random random(11);
  for (int run = 0; run < 300; ++run) {
    const std::vector<LatticePoint> points = random_points(random, random.between(1, run < 250 ? 90 : 256));
    std::vector<std::uint16_t> order(points.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint16_t>(i);
    int left = -1;
    simt::shuffle_threads(static_cast<std::uint64_t>(run % 3));
    simt::launch(1, 32, [&] {
      const int found = sweep_warp(order.data(), static_cast<int>(points.size()), [&](int a, int b, int d) {
        return below(points[static_cast<std::size_t>(a)], points[static_cast<std::size_t>(b)],
                     points[static_cast<std::size_t>(d)]);
      });
      if (threadIdx.x == 17) left = found;
    });
    order.resize(static_cast<std::size_t>(left));
    EXPECT_EQ(order, hull_by_definition(points)) << "run " << run << ", " << points.size() << " points";
  }
}

TEST_F(Sweeps, OfABlockFindTheHull) {
  constexpr int kCapacity = 1024;
  Random random(12);
  for (int run = 0; run < 12; ++run) {
    const std::vector<LatticePoint> points = random_points(random, random.between(1, run < 8 ? 300 : 900));
    std::vector<std::uint16_t> order(kCapacity);
    for (std::size_t i = 0; i < points.size(); ++i) order[i] = static_cast<std::uint16_t>(i);
    std::vector<int> counts(kCapacity / 32);
    std::vector<int> left(kBlock);
    simt::shuffle_threads(static_cast<std::uint64_t>(run % 3));
    simt::launch(1, kBlock, [&] {
      left[threadIdx.x] = sweep_block<kCapacity>(
          order.data(), static_cast<int>(points.size()), run % 2 == 0 ? 64 : 0, counts.data(),
          [&](int a, int b, int d) {
            return below(points[static_cast<std::size_t>(a)], points[static_cast<std::size_t>(b)],
                         points[static_cast<std::size_t>(d)]);
          });
    });
    EXPECT_EQ(left, std::vector<int>(kBlock, left[0]));
    order.resize(static_cast<std::size_t>(left[0]));
    EXPECT_EQ(order, hull_by_definition(points)) << "run " << run << ", " << points.size() << " points";
  }
}

// Neighbouring convex lists, some of them empty: what is cut is no vertex, and sweeps find the hull of the
// rest.
TEST_F(Sweeps, OfCutListsFindTheHull) {
  constexpr int kCapacity = 1024;
  Random random(13);
  int cut = 0;
  for (int run = 0; run < 60; ++run) {
    const auto lists = static_cast<int>(random.between(1, kMostLists));
    const std::vector<LatticePoint> points = random_points(random, random.between(1, 600));
    std::vector<std::uint16_t> order;
    JointScratch joints{};
    std::size_t begin = 0;
    for (int list = 0; list < lists; ++list) {
      const std::size_t end =
          list + 1 == lists
              ? points.size()
              : std::min(points.size(), begin + static_cast<std::size_t>(random.between(0, 40)));
      joints.bounds[list] = static_cast<int>(order.size());
      const std::vector<LatticePoint> part(points.begin() + static_cast<std::ptrdiff_t>(begin),
                                           points.begin() + static_cast<std::ptrdiff_t>(end));
      for (const std::uint16_t vertex : hull_by_definition(part)) {
        order.push_back(static_cast<std::uint16_t>(begin + vertex));
      }
      begin = end;
    }
    joints.bounds[lists] = static_cast<int>(order.size());
    const auto before = static_cast<int>(order.size());
    std::vector<int> counts(kCapacity / 32);
    std::vector<int> left(kBlock);
    std::vector<int> remaining(kBlock);
    simt::shuffle_threads(static_cast<std::uint64_t>(run % 3));
    simt::launch(1, kBlock, [&] {
      const auto is_vertex = [&](int a, int b, int d) {
        return below(points[static_cast<std::size_t>(a)], points[static_cast<std::size_t>(b)],
                     points[static_cast<std::size_t>(d)]);
      };
      remaining[threadIdx.x] = cut_joints<kCapacity>(order.data(), lists, joints, counts.data(), is_vertex);
      left[threadIdx.x] =
          sweep_block<kCapacity>(order.data(), remaining[threadIdx.x], 32, counts.data(), is_vertex, false);
    });
    EXPECT_EQ(remaining, std::vector<int>(kBlock, remaining[0]));
    cut += before - remaining[0];
    order.resize(static_cast<std::size_t>(left[0]));
    EXPECT_EQ(order, hull_by_definition(points)) << "run " << run << ", " << lists << " lists";
  }
  EXPECT_GT(cut, 500);
}

// From near and from far, in ranges of any length.
TEST_F(Sweeps, SearchFindsTheFirst) {
  Random random(14);
  for (int run = 0; run < 400; ++run) {
    const std::int64_t count = 1 + random.below(std::int64_t{1} << random.between(0, 40));
    const std::int64_t first = std::min(random.below(std::int64_t{1} << random.between(0, 40)), count - 1);
    std::vector<std::int64_t> found(32);
    int asked = 0;
    simt::launch(1, 32, [&] {
      found[threadIdx.x] = first_that_holds(count, [&](std::int64_t k) {
        EXPECT_LT(k, count - 1);
        ++asked;
        return k >= first;
      });
    });
    EXPECT_EQ(found, std::vector<std::int64_t>(32, first)) << "of " << count;
    EXPECT_LT(asked, 32 * 20);
  }
}

// Totals of floats too far apart for a double, at every element.
TEST_F(Sweeps, TotalsInTwoDoublesAreExact) {
  Random random(15);
  for (int run = 0; run < 60; ++run) {
    const auto length = static_cast<int>(random.between(1, 600));
    std::vector<float> values(static_cast<std::size_t>(length));
    double magnitude = 0;
    FloatUnit unit;
    for (float& value : values) {
      value = static_cast<float>(std::ldexp(random.normal(), static_cast<int>(random.between(-40, 20))));
      magnitude += std::fabs(value);
      unit.see(value);
    }
    if (!exact_in_two(magnitude, unit.unit())) continue;
    std::vector<DoubleDouble> totals(values.size());
    DoubleDouble all{};
    const Elements<float, Unweighted> row{values.data(), nullptr, 1.0};
    simt::launch(1, 32, [&] {
      const DoubleDouble total = visit_totals(row, 0, length, magnitude, [&](int i, DoubleDouble before) {
        totals[static_cast<std::size_t>(i)] = before;
      });
      if (threadIdx.x == 5) all = total;
    });
    mpq_class exact = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(mpq_class(totals[i].high) + mpq_class(totals[i].low), exact) << "run " << run << ", " << i;
      exact += mpq_class(static_cast<double>(values[i]));
    }
    EXPECT_EQ(mpq_class(all.high) + mpq_class(all.low), exact);
  }
}

// What the filter makes of a chunk.
struct Filtered {
  bool worth = false;
  std::vector<std::uint32_t> candidates;  // a bit a point, a word a tile
  std::vector<int> hull;                  // empty: too many candidates
};

template <class E, int Tiles>
Filtered filter(const E& row, int length) {
  Filtered result;
  result.candidates.resize(static_cast<std::size_t>((length + kTile - 1) / kTile));
  const auto scratch = std::make_unique<SparseScratch<E, Tiles>>();
  const auto stage = std::make_unique<Stage<E>>();
  const auto scan = [&] {
    const int lane = static_cast<int>(threadIdx.x);
    SparseChunk<E, Tiles> chunk{*scratch, row, 0, length, {}};
    stage_elements(*stage, row, 0, length);
    for (int first = 0; first < length; first += kGroup) {
      ScanFacts facts;
      const TileScan<E> tile = scan_group<E>(*stage, std::min(length - first, kGroup), row.sign, facts, [&] {
        stage_elements(*stage, row, first + kGroup, length - first - kGroup);
      });
      const int at = first / kTile + lane;
      if (at < chunk.tiles()) scratch->set_tile(at, tile);
      chunk.facts = chunk.facts + facts;
    }
    __syncwarp();
    return chunk;
  };
  simt::launch(1, 32, [&] {
    SparseChunk<E, Tiles> chunk = scan();
    if (!worth_filtering<E>(chunk.facts, length)) return;
    result.worth = true;
    chunk.exact = kPlainTiles<E> && isofold::exact_as_double(chunk.facts.magnitude, chunk.facts.unit);
    sum_before_tiles(chunk);
    int alive = list_alive_tiles(chunk);
    const int corners = find_corners(chunk, alive);
    alive = choose_points(chunk, alive, corners);
    for (int i = static_cast<int>(threadIdx.x); i < alive; i += 32) {
      const int tile = scratch->alive[i];
      result.candidates[static_cast<std::size_t>(tile)] = scratch->chosen()[tile];
    }
  });
  if (!result.worth) return result;
  simt::launch(1, 32, [&] {
    SparseChunk<E, Tiles> chunk = scan();
    const int count = find_sparse_hull(chunk);
    if (threadIdx.x != 5) return;
    for (int i = 0; i < count; ++i) {
      result.hull.push_back(scratch->points.position[scratch->points.order[i]]);
    }
  });
  return result;
}

// Values whose diagram runs along chords of itself: stairs, lines and arcs, all but flat at times, on an
// offset that leaves few bits for the rest.
std::vector<double> stairs(Random& random, std::int64_t length, bool single) {
  std::vector<double> values;
  const double offset =
      random.chance(0.5) ? 0.0 : random.sign() * std::ldexp(1.0, static_cast<int>(random.below(30)));
  const double noise =
      random.chance(0.3) ? 0.0 : std::ldexp(1.0, -static_cast<int>(random.below(single ? 24 : 50)));
  const std::int64_t step = random.chance(0.3) ? 32 * random.between(1, 40) : random.between(1, 2000);
  const double rise =
      random.chance(0.2) ? 0.0 : std::ldexp(random.unit(), -static_cast<int>(random.below(20)));
  const double slope = random.chance(0.5) ? 0.0 : -std::ldexp(1.0, -static_cast<int>(random.below(25)));
  const bool ints = random.chance(0.3);
  for (std::int64_t i = 0; i < length; ++i) {
    double value = offset + rise * static_cast<double>(i / step) + slope * static_cast<double>(i % step);
    value += noise * (ints ? static_cast<double>(random.between(-1, 1)) : random.normal());
    values.push_back(single ? static_cast<double>(static_cast<float>(value)) : value);
  }
  return values;
}

template <class V, class W>
void check_filter(std::uint64_t seed, int runs, int at_least) {
  using E = Elements<V, W>;
  Random random(seed);
  const auto& families = value_families();
  int filtered = 0;
  int found = 0;
  for (int run = 0; run < runs; ++run) {
    const std::int64_t length =
        run % 3 == 0 ? random.between(33, 1024) : random.between(1025, kScanTiles * kTile);
    constexpr DataType kType = sizeof(V) == 4 ? DataType::float32 : DataType::float64;
    FitCase row;
    std::vector<double> y = stairs(random, length, sizeof(V) == 4);
    row.name = "stairs";
    if (run % 4 == 0) {
      const Family& family =
          families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))];
      ZooRow zoo;
      zoo.values_type = kType;
      family.fill(random, length, zoo);
      y.assign(zoo.values.begin(), zoo.values.end());
      row.name = family.name;
    }
    row.name += ", run " + std::to_string(run) + ", " + std::to_string(length);
    row.values = {kType, y};
    if constexpr (E::kWeighted) {
      constexpr DataType kWeightType = sizeof(W) == 4 ? DataType::float32 : DataType::float64;
      Doubles w;
      if (random.chance(0.5)) {
        for (std::int64_t i = 0; i < length; ++i) w.push_back(static_cast<double>(random.between(1, 99)));
      } else {
        fill_weights(random, kWeightType, length, w);
      }
      row.weights = {kWeightType, std::vector<double>(w.begin(), w.end())};
    }
    row.increasing = random.chance(0.5);
    E elements{reinterpret_cast<const V*>(row.values.bytes.data()), nullptr, row.increasing ? 1.0 : -1.0};
    if constexpr (E::kWeighted) elements.weights = reinterpret_cast<const W*>(row.weights.bytes.data());
    simt::shuffle_threads(static_cast<std::uint64_t>(run % 3));
    const Filtered result = length <= 1024 && run % 2 == 0
                                ? filter<E, 32>(elements, static_cast<int>(length))
                                : filter<E, kScanTiles>(elements, static_cast<int>(length));
    if (!result.worth) continue;
    ++filtered;
    const std::vector<std::uint8_t> starts = fit_on_cpu(row, kType).starts;
    std::vector<int> vertices;
    for (std::int64_t i = 0; i < length; ++i) {
      if (starts[static_cast<std::size_t>(i)] == 0) continue;
      vertices.push_back(static_cast<int>(i));
      EXPECT_NE(result.candidates[static_cast<std::size_t>(i / kTile)] >> (i % kTile) & 1U, 0U)
          << row.name << ": vertex " << i << " was dropped";
    }
    vertices.push_back(static_cast<int>(length));
    if (result.hull.empty()) continue;
    ++found;
    EXPECT_EQ(result.hull, vertices) << row.name;
  }
  // Else nothing was tested.
  EXPECT_GE(filtered, at_least);
  EXPECT_GE(found, at_least);
}

using Filters = OnDevice;

TEST_F(Filters, KeepVerticesOfFloats) { check_filter<float, Unweighted>(1, 1200, 500); }
TEST_F(Filters, KeepVerticesOfDoubles) { check_filter<double, Unweighted>(2, 600, 250); }
TEST_F(Filters, KeepVerticesOfWeightedFloats) { check_filter<float, float>(3, 600, 250); }
TEST_F(Filters, KeepVerticesOfWeightedDoubles) { check_filter<double, double>(4, 600, 250); }

}  // namespace
}  // namespace isofold_test
