// Bridges by alternating tangents against the hull of all points.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "geometry/chain_bridge.hpp"
#include "support/random.hpp"

namespace isofold_test {
namespace {

struct Place {
  std::int64_t index;
  std::int64_t height;
};

bool bends_up(const Place& a, const Place& b, const Place& d) {
  return (b.index - a.index) * (d.height - b.height) > (b.height - a.height) * (d.index - b.index);
}

std::vector<std::int64_t> hull(const std::vector<std::int64_t>& heights, std::int64_t begin,
                               std::int64_t end) {
  std::vector<std::int64_t> kept;
  const auto place = [&](std::int64_t i) { return Place{i, heights[static_cast<std::size_t>(i)]}; };
  for (std::int64_t i = begin; i < end; ++i) {
    while (kept.size() >= 2 && !bends_up(place(kept[kept.size() - 2]), place(kept.back()), place(i)))
      kept.pop_back();
    kept.push_back(i);
  }
  return kept;
}

// The vertices of both chains, as ChainBridge asks for them; counts the turns.
struct Chain {
  using Point = Place;
  const std::vector<std::int64_t>* heights;
  const std::vector<std::int64_t>* vertices;
  std::int64_t* turns;

  [[nodiscard]] Point point(std::int64_t i) const { return {i, (*heights)[static_cast<std::size_t>(i)]}; }
  [[nodiscard]] bool is_vertex(const Point& a, const Point& b, const Point& d) const {
    ++*turns;
    return bends_up(a, b, d);
  }
  [[nodiscard]] std::int64_t at_or_before(std::int64_t i) const {
    const auto next = std::upper_bound(vertices->begin(), vertices->end(), i);
    EXPECT_NE(next, vertices->begin());
    return *std::prev(next);
  }
  [[nodiscard]] std::int64_t at_or_after(std::int64_t i) const {
    const auto next = std::lower_bound(vertices->begin(), vertices->end(), i);
    EXPECT_NE(next, vertices->end());
    return *next;
  }
};

// Bridges the hulls of both parts and compares with the hull of the whole. Returns the turns asked.
std::int64_t check(const std::vector<std::int64_t>& heights, std::int64_t middle) {
  const auto count = static_cast<std::int64_t>(heights.size());
  const std::vector<std::int64_t> left = hull(heights, 0, middle);
  const std::vector<std::int64_t> right = hull(heights, middle, count);
  std::vector<std::int64_t> both = left;
  both.insert(both.end(), right.begin(), right.end());
  std::int64_t turns = 0;
  const Chain chain{&heights, &both, &turns};
  const isofold::ChainBridge<Chain> bridge(chain, left.front(), left.back(), right.front(), right.back());
  std::vector<std::int64_t> merged;
  for (const std::int64_t v : both) {
    if (v <= bridge.left() || v >= bridge.right()) merged.push_back(v);
  }
  EXPECT_EQ(merged, hull(heights, 0, count));
  return turns;
}

TEST(ChainBridge, JoinsRandomHulls) {
  Random random(1, 1);
  for (int round = 0; round < 20000; ++round) {
    const std::int64_t count = random.between(2, round % 100 == 0 ? 400 : 30);
    const std::int64_t spread = random.between(0, 3) == 0 ? 2 : 1000;  // narrow: many ties
    std::vector<std::int64_t> heights{0};
    for (std::int64_t i = 1; i < count; ++i) {
      heights.push_back(heights.back() + random.between(-spread, spread) +
                        (round % 3 == 0 ? i * spread / 8 : 0));
    }
    check(heights, random.between(1, count - 1));
    if (HasFailure()) return;
  }
}

TEST(ChainBridge, NeedsFewTurnsWhereManyVerticesGo) {
  // Two parabolas and a cliff: most of both chains goes, a walk would take a turn a vertex.
  constexpr std::int64_t kHalf = 50000;
  std::vector<std::int64_t> heights;
  for (std::int64_t i = 0; i < kHalf; ++i) heights.push_back(i * i);
  for (std::int64_t i = 0; i < kHalf; ++i) heights.push_back(i * i - 40 * kHalf);
  EXPECT_LT(check(heights, kHalf), 400);
}

}  // namespace
}  // namespace isofold_test
