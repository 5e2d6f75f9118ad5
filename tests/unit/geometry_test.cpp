// Turns, vertex masks, segment lists and bridges on their own, against fractions and against the plain
// definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "geometry/bridge.hpp"
#include "geometry/turn.hpp"
#include "support/exact_conversions.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

using isofold::Bridge;
using isofold::BridgeWork;
using isofold::CertifiedSum;
using isofold::DoubleDouble;
using isofold::Hull;
using isofold::Point;
using isofold::Segment;
using isofold::SumBuilder;
using isofold::Turn;
using isofold::Vertex;
using isofold::VertexMask;

// --- turn ---

struct ExactPoint {
  Point point;
  mpq_class weight;
  mpq_class total;
};

bool bends_up(const ExactPoint& a, const ExactPoint& b, const ExactPoint& d) {
  return (b.weight - a.weight) * (d.total - b.total) > (b.total - a.total) * (d.weight - b.weight);
}

// The diagram of a random row, prefix sums as certified pairs.
std::vector<ExactPoint> random_diagram(Random& random, bool weighted) {
  const auto& families = value_families();
  ZooRow row;
  families[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())))].fill(random,
                                                                                                    24, row);
  Doubles weights(row.values.size(), 1.0);
  if (weighted) fill_weights(random, DataType::float64, static_cast<std::int64_t>(weights.size()), weights);
  std::vector<ExactPoint> diagram;
  SumBuilder weight;
  SumBuilder total;
  mpq_class exact_weight = 0;
  mpq_class exact_total = 0;
  for (std::size_t i = 0; i <= row.values.size(); ++i) {
    diagram.push_back(
        {{static_cast<std::int64_t>(i), weight.finish(), total.finish()}, exact_weight, exact_total});
    if (i == row.values.size()) break;
    weight.add(weights[i]);
    total.add_product(row.values[i], weights[i]);
    exact_weight += fraction(weights[i]);
    exact_total += fraction(weights[i]) * fraction(row.values[i]);
  }
  return diagram;
}

TEST(Turns, DoublesAreRightOrSilentAndTheLadderIsRight) {
  Random random(740);
  std::int64_t silent = 0;
  std::int64_t asked = 0;
  std::int64_t turns = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::vector<ExactPoint> diagram = random_diagram(random, random.chance(0.5));
    for (int k = 0; k < 40; ++k) {
      std::int64_t places[3];
      for (std::int64_t& place : places) place = random.below(static_cast<std::int64_t>(diagram.size()));
      std::sort(places, places + 3);
      if (places[0] == places[1] || places[1] == places[2]) continue;
      const ExactPoint& a = diagram[static_cast<std::size_t>(places[0])];
      const ExactPoint& b = diagram[static_cast<std::size_t>(places[1])];
      const ExactPoint& d = diagram[static_cast<std::size_t>(places[2])];
      const bool up = bends_up(a, b, d);
      const Turn fast = isofold::turn_in_doubles(a.point, b.point, d.point);
      ++turns;
      silent += fast == Turn::undecided ? 1 : 0;
      if (fast != Turn::undecided) {
        ASSERT_EQ(fast == Turn::up, up);
      }
      const bool ladder = isofold::is_vertex(a.point, b.point, d.point,
                                             [&](const Point& from, const Point& at, const Point& to) {
                                               ++asked;
                                               EXPECT_EQ(from.index, a.point.index);
                                               EXPECT_EQ(at.index, b.point.index);
                                               EXPECT_EQ(to.index, d.point.index);
                                               return up;
                                             });
      ASSERT_EQ(ladder, up);
    }
  }
  EXPECT_LT(silent, turns / 2);
  EXPECT_GT(asked, 100);
  EXPECT_LT(asked, silent) << "pairs that are exact need no help";
}

// An integer of up to 106 bits times 2^exponent.
DoubleDouble exact_pair_of(isofold::Int128 value, int exponent) {
  const auto high = static_cast<double>(value);
  const auto low = static_cast<double>(value - static_cast<isofold::Int128>(high));
  return {std::ldexp(high, exponent), std::ldexp(low, exponent)};
}

// Edges of equal slope, and those that differ by one unit of sums of 100 bits.
TEST(Turns, TermsDecideWhatIsStraightAndWhatIsNearlySo) {
  Random random(743);
  int undecided = 0;
  constexpr int kRounds = 200000;
  for (int round = 0; round < kRounds; ++round) {
    const std::int64_t w_ab = random.between(1, std::int64_t{1} << random.between(0, 20));
    const std::int64_t w_bd = random.between(1, std::int64_t{1} << random.between(0, 20));
    const int bits = static_cast<int>(random.between(1, 79));
    isofold::Int128 slope = random.between(-(std::int64_t{1} << 61), std::int64_t{1} << 61);
    slope = (slope * (std::int64_t{1} << 18) + random.between(0, 1 << 18)) >> (79 - bits);
    const auto extra = random.between(-1, 1);
    const int exponent =
        static_cast<int>(random.chance(0.2) ? random.between(-1074, 850) : random.between(-60, 60));
    const DoubleDouble s_ab = exact_pair_of(slope * w_ab, exponent);
    const DoubleDouble s_bd = exact_pair_of(slope * w_bd + extra, exponent);
    const Turn turn =
        isofold::turn_of_terms(static_cast<double>(w_ab), s_ab, static_cast<double>(w_bd), s_bd);
    if (turn == Turn::undecided) {
      ++undecided;
      continue;
    }
    ASSERT_EQ(turn == Turn::up, extra > 0) << round;
  }
  EXPECT_LT(undecided, kRounds / 20) << "but for products near the ends of the range";
}

TEST(Turns, HoldForAnyPointsWithinTheError) {
  Random random(741);
  for (int round = 0; round < 60000; ++round) {
    ExactPoint points[3];
    double weight = 0;
    double total = 0;
    for (int k = 0; k < 3; ++k) {
      weight += std::ldexp(1.0 + random.unit(), static_cast<int>(random.between(-8, 8)));
      total += std::ldexp(random.normal(), static_cast<int>(random.between(-8, 8)));
      const double w_error =
          random.chance(0.5) ? 0.0 : weight * std::ldexp(1.0, -static_cast<int>(random.between(20, 100)));
      const double s_error =
          random.chance(0.3) ? 0.0
                             : std::fabs(total) * std::ldexp(1.0, -static_cast<int>(random.between(20, 100)));
      points[k].point = {k,
                         {{weight, weight * 0x1p-54 * random.unit()}, w_error},
                         {{total, total * 0x1p-54 * random.unit()}, s_error}};
      points[k].weight = fraction(points[k].point.weight.value) + fraction(w_error) * random.between(-1, 1);
      points[k].total = fraction(points[k].point.total.value) + fraction(s_error) * random.between(-1, 1);
    }
    const Turn fast = isofold::turn_in_doubles(points[0].point, points[1].point, points[2].point);
    if (fast != Turn::undecided) {
      ASSERT_EQ(fast == Turn::up, bends_up(points[0], points[1], points[2]));
    }
  }
}

// Pairs that nearly cancel, low parts and all: what is left is the rounding of the low parts.
TEST(Turns, DifferencesStayWithinTheirError) {
  Random random(745);
  for (int round = 0; round < 100000; ++round) {
    const double high = std::ldexp(1.0 + random.unit(), static_cast<int>(random.between(-200, 200)));
    const double place = step(DataType::float64, high, 1) - high;
    const double other = high + place * static_cast<double>(random.between(-1, 1));
    const CertifiedSum a{{high, place * (random.unit() - 0.5)}, 0.0};
    // Next to the other's value: the high parts' difference is made up for by the low parts.
    const double near = (high - other) + a.value.low;
    const CertifiedSum b{
        {other, random.chance(0.5) ? near * (1 + 0x1p-50 * random.unit()) : place * random.unit()}, 0.0};
    const isofold::Difference got = isofold::difference(a, b);
    const mpq_class exact = fraction(b.value) - fraction(a.value);
    ASSERT_LE(abs(fraction(got.value) - exact), fraction(got.error));
  }
}

// Both products are just below 1.5 2^-1074. Their factors' low parts are lost in the differences, so that in
// doubles one is the midpoint itself and rounds up, the other stays below it and rounds down; in truth it is
// the larger.
TEST(Turns, DoNotTrustTheLastBitOfAnUnderflowingProduct) {
  const double place = 0x1p-52;
  const auto pair = [](double high, double low) {
    return CertifiedSum{{std::ldexp(high, -537), std::ldexp(low, -537)}, 0.0};
  };
  const ExactPoint a{{0, pair(0, 0), pair(0, 0)}, 0, 0};
  // W_ab = 1.5 - 0.4375 places, S_ab = 1.5 - 0.515625 places, W_bd = 1, S_bd = 1 - 0.234375 places.
  ExactPoint b{{1, pair(1.5, -0.4375 * place), pair(1.5 - place, 0.484375 * place)}, 0, 0};
  ExactPoint d{{2, pair(2.5, -0.4375 * place), pair(2.5, -0.75 * place)}, 0, 0};
  for (ExactPoint* point : {&b, &d}) {
    point->weight = fraction(point->point.weight.value);
    point->total = fraction(point->point.total.value);
  }
  ASSERT_FALSE(bends_up(a, b, d));
  EXPECT_NE(isofold::turn_in_doubles(a.point, b.point, d.point), Turn::up);
}

TEST(Turns, KnowNothingFromInfinities) {
  const double inf = std::numeric_limits<double>::infinity();
  const Point a{0, {{0.0, 0.0}, 0.0}, {{0.0, 0.0}, 0.0}};
  const Point b{1, {{1.0, 0.0}, 0.0}, {{1.0, 0.0}, inf}};
  const Point c{1, {{1.0, 0.0}, 0.0}, {{inf, 0.0}, 0.0}};
  const Point n{1, {{1.0, 0.0}, 0.0}, {{std::nan(""), 0.0}, 0.0}};
  const Point d{2, {{2.0, 0.0}, 0.0}, {{5.0, 0.0}, 0.0}};
  for (const Point& point : {b, c, n}) EXPECT_EQ(isofold::turn_in_doubles(a, point, d), Turn::undecided);
}

// --- masks and segment lists ---

TEST(VertexMasks, FindNeighboursAndHoles) {
  Random random(742);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint32_t> words(6);
    std::vector<bool> bits;
    const double density = random.unit();
    for (int i = 0; i < 160; ++i) {
      bits.push_back(random.chance(density));
      if (bits.back()) words[static_cast<std::size_t>(i / 32)] |= 1U << (i % 32);
    }
    const VertexMask mask(words.data());
    for (std::int64_t i = 0; i < 160; ++i) {
      const auto from = bits.begin() + i;
      const auto next = std::find(from, bits.end(), true);
      if (next != bits.end()) {
        ASSERT_EQ(mask.next(i), next - bits.begin());
      }
      const auto previous = std::find(std::make_reverse_iterator(from + 1), bits.rend(), true);
      if (previous != bits.rend()) {
        ASSERT_EQ(mask.previous(i), bits.rend() - previous - 1);
      }
      for (const std::int64_t limit : {i, i + 1, i + 40, std::int64_t{160}}) {
        const auto end = bits.begin() + std::clamp<std::int64_t>(limit, i, 160);
        ASSERT_EQ(mask.next_hole(i, std::min<std::int64_t>(limit, 160)),
                  std::find(from, end, false) - bits.begin());
      }
    }
  }
}

// A diagram of small integers, where collinear points are everywhere, with naive hulls.
class IntegerDiagram {
 public:
  IntegerDiagram(Random& random, std::int64_t length, std::int64_t range, std::int64_t slope)
      : totals_(static_cast<std::size_t>(length + 1)), words_(static_cast<std::size_t>(length / 32 + 1)) {
    for (std::int64_t i = 0; i < length; ++i) {
      totals_[static_cast<std::size_t>(i + 1)] =
          totals_[static_cast<std::size_t>(i)] + random.between(-range, range) + slope * i / 4;
    }
  }

  [[nodiscard]] VertexMask mask() const { return VertexMask(words_.data()); }
  [[nodiscard]] Point point(std::int64_t index) const { return {index, {}, {}}; }
  [[nodiscard]] bool is_vertex(const Point& a, const Point& b, const Point& d) const {
    return (b.index - a.index) * (total(d.index) - total(b.index)) >
           (total(b.index) - total(a.index)) * (d.index - b.index);
  }

  // The strictly convex hull of the points begin .. end, both included.
  [[nodiscard]] std::vector<std::int64_t> hull(std::int64_t begin, std::int64_t end) const {
    std::vector<std::int64_t> stack;
    for (std::int64_t k = begin; k <= end; ++k) {
      while (stack.size() >= 2 && !is_vertex(point(stack[stack.size() - 2]), point(stack.back()), point(k)))
        stack.pop_back();
      stack.push_back(k);
    }
    return stack;
  }
  void mark(const std::vector<std::int64_t>& vertices) {
    for (const std::int64_t v : vertices) words_[static_cast<std::size_t>(v / 32)] |= 1U << (v % 32);
  }

 private:
  [[nodiscard]] std::int64_t total(std::int64_t index) const {
    return totals_[static_cast<std::size_t>(index)];
  }

  std::vector<std::int64_t> totals_;
  std::vector<std::uint32_t> words_;
};

std::vector<std::int64_t> vertices_of(const Hull& hull, const VertexMask& mask) {
  std::vector<std::int64_t> vertices;
  for (Vertex v = first_vertex(hull);; v = after(hull, mask, v)) {
    vertices.push_back(v.index);
    if (is_end(hull, v)) return vertices;
  }
}

// A row of chunks, merged pairwise as the solver does.
struct MergeTree {
  IntegerDiagram diagram;
  std::int64_t chunk;
  std::int64_t length;
  std::vector<Segment> segments;
  std::vector<std::int64_t> counts, ends;

  MergeTree(Random& random, std::int64_t chunk_size, std::int64_t chunks, std::int64_t range,
            std::int64_t slope)
      : diagram(random, chunk_size * chunks, range, slope), chunk(chunk_size), length(chunk_size * chunks) {
    for (std::int64_t begin = 0; begin < length; begin += chunk) {
      std::vector<std::int64_t> vertices = diagram.hull(begin, begin + chunk);
      vertices.pop_back();
      diagram.mark(vertices);
      segments.push_back({vertices.front(), vertices.back()});
      counts.push_back(1);
      ends.push_back(begin + chunk);
    }
  }
  [[nodiscard]] Hull node(std::size_t chunk_index) const {
    return {segments.data() + chunk_index, counts[chunk_index], ends[chunk_index]};
  }
};

// The bridge by definition: the merged hull's last vertex of the left part and first of the right.
std::pair<std::int64_t, std::int64_t> bridge_of(const std::vector<std::int64_t>& merged,
                                                std::int64_t shared) {
  const auto right = std::lower_bound(merged.begin(), merged.end(), shared);
  return {*(right - 1), *right};
}

TEST(Bridges, MergeAsTheDefinitionSays) {
  Random random(743);
  std::int64_t searched = 0;
  for (int round = 0; round < 1500 && !HasFailure(); ++round) {
    const std::int64_t chunk = random.chance(0.5) ? 8 : 32;
    MergeTree tree(random, chunk, random.between(2, 12), random.between(0, 6), random.between(0, 3));
    const std::int64_t cap = random.chance(0.3) ? 0 : random.between(1, 20);
    const std::size_t chunks = tree.segments.size();
    for (std::size_t half = 1; half < chunks; half *= 2) {
      for (std::size_t left = 0; left + half < chunks; left += 2 * half) {
        const Hull left_hull = tree.node(left);
        const Hull right_hull = tree.node(left + half);
        const std::int64_t begin = first_vertex(left_hull).index;
        const std::int64_t shared = first_vertex(right_hull).index;
        ASSERT_EQ(left_hull.end, shared);
        const std::vector<std::int64_t> expected = tree.diagram.hull(begin, right_hull.end);
        const auto [alpha, beta] = bridge_of(expected, shared);
        const std::int64_t before =
            static_cast<std::int64_t>(vertices_of(left_hull, tree.diagram.mask()).size() +
                                      vertices_of(right_hull, tree.diagram.mask()).size()) -
            1;
        const std::int64_t removed = before - static_cast<std::int64_t>(expected.size());

        BridgeWork patient;
        const Bridge walked =
            isofold::BridgeFinder(tree.diagram, left_hull, right_hull, &patient).find(1 << 30);
        EXPECT_EQ(walked.left.index, alpha);
        EXPECT_EQ(walked.right.index, beta);
        EXPECT_FALSE(patient.searched);
        EXPECT_LE(patient.walk_steps, 3 * removed + 2) << removed << " vertices removed";

        BridgeWork capped;
        const Bridge found = isofold::BridgeFinder(tree.diagram, left_hull, right_hull, &capped).find(cap);
        EXPECT_EQ(found.left.index, alpha) << "after " << capped.walk_steps << " steps, then a search";
        EXPECT_EQ(found.right.index, beta);
        EXPECT_LE(capped.walk_steps, std::max<std::int64_t>(cap, 1));
        searched += capped.searched ? 1 : 0;

        tree.counts[left] = join_segments(tree.segments.data() + left, static_cast<std::int64_t>(half),
                                          right_hull, found.left, found.right);
        tree.ends[left] = right_hull.end;
        EXPECT_EQ(vertices_of(tree.node(left), tree.diagram.mask()), expected);
        EXPECT_LE(tree.counts[left], static_cast<std::int64_t>(2 * half));
        if (HasFailure()) return;
      }
    }
  }
  EXPECT_GT(searched, 500);
}

TEST(SegmentLists, WalkBothWays) {
  Random random(744);
  for (int round = 0; round < 200; ++round) {
    const MergeTree tree(random, 32, 3, 4, 1);
    // Three chunks as one list, each cut to a range of its vertices.
    std::vector<Segment> list;
    std::vector<std::int64_t> expected;
    for (std::size_t j = 0; j < 3; ++j) {
      std::vector<std::int64_t> vertices = vertices_of(tree.node(j), tree.diagram.mask());
      vertices.pop_back();
      const auto first = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(vertices.size())));
      const auto last =
          first + static_cast<std::size_t>(random.below(static_cast<std::int64_t>(vertices.size() - first)));
      list.push_back({vertices[first], vertices[last]});
      expected.insert(expected.end(), vertices.begin() + static_cast<std::ptrdiff_t>(first),
                      vertices.begin() + static_cast<std::ptrdiff_t>(last) + 1);
    }
    const Hull hull{list.data(), 3, 96};
    expected.push_back(96);
    ASSERT_EQ(vertices_of(hull, tree.diagram.mask()), expected);
    Vertex v = end_vertex(hull);
    for (std::size_t k = expected.size(); k-- > 1;) {
      ASSERT_EQ(v.index, expected[k]);
      ASSERT_FALSE(is_first(hull, v));
      v = before(hull, tree.diagram.mask(), v);
    }
    ASSERT_TRUE(is_first(hull, v));
  }
}

}  // namespace
}  // namespace isofold_test
