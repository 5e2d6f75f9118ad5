// The paper's counts on the CPU's merge tree ('Merge Hulls Without Copying Vertices', Lemma 5.1, Theorems 4.4
// and 5.2).
#include <gtest/gtest.h>

#include "cpu/row_hull.hpp"
#include "support/exact_oracle.hpp"
#include "support/long_row.hpp"

namespace isofold_test {
namespace {

using isofold::BridgeWork;
using isofold::Hull;
using isofold::RowView;
using isofold::Vertex;
using isofold::cpu::Chunk;
using isofold::cpu::RowHull;

struct Family {
  const char* name;
  double (*value)(std::int64_t i, std::int64_t n, Random& random);
};
void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

double position(std::int64_t i) { return static_cast<double>(i); }

const Family kFamilies[] = {
    {"noise", [](std::int64_t i, std::int64_t n,
                 Random& random) { return 3 * position(i) / position(n) + random.normal(); }},
    {"increasing",
     [](std::int64_t i, std::int64_t, Random& random) { return position(i) + 0.5 * random.unit(); }},
    {"sawtooth",
     [](std::int64_t i, std::int64_t, Random&) { return position(i % 1000) + 0.1 * position(i); }},
    {"cliff", [](std::int64_t i, std::int64_t n, Random&) { return i == n - 1 ? -1e12 : position(i); }},
    {"mirrored_cliff", [](std::int64_t i, std::int64_t, Random&) { return i == 0 ? 1e12 : position(i); }},
    {"shallow_cliff",
     [](std::int64_t i, std::int64_t n, Random&) { return i == n - 1 ? -1e8 : position(i); }},
    {"two_ramps",
     [](std::int64_t i, std::int64_t n, Random&) { return position(2 * i < n ? i : i - n / 3); }},
    {"decimals", [](std::int64_t i, std::int64_t, Random&) { return position(i % 9) * 0.1; }},
};

Doubles values_of(const Family& family, std::int64_t length) {
  Random random(800);
  Doubles values;
  for (std::int64_t i = 0; i < length; ++i) values.push_back(family.value(i, length, random));
  return values;
}

std::vector<std::int64_t> vertices_of(const Hull& hull, const isofold::VertexMask& mask) {
  std::vector<std::int64_t> vertices;
  for (Vertex v = first_vertex(hull);; v = after(hull, mask, v)) {
    vertices.push_back(v.index);
    if (is_end(hull, v)) return vertices;
  }
}

// The hull of the points begin .. end of a row's diagram, by the oracle.
std::vector<std::int64_t> exact_hull(const Doubles& values, std::int64_t begin, std::int64_t end) {
  static ExactOracle oracle;
  static OracleAnswer answer;
  OracleRow row;
  row.values.assign(values.begin() + begin, values.begin() + end);
  oracle.solve(row, answer);
  std::vector<std::int64_t> vertices;
  for (std::int64_t i = begin; i < end; ++i) {
    if (answer.block_starts[static_cast<std::size_t>(i - begin)] != 0) vertices.push_back(i);
  }
  vertices.push_back(end);
  return vertices;
}

class MergeTree : public testing::TestWithParam<std::tuple<Family, std::int64_t>> {};

TEST_P(MergeTree, KeepsThePapersCounts) {
  const auto& [family, chunk_size] = GetParam();
  const std::int64_t length = 40 * chunk_size + 17;
  const Doubles values = values_of(family, length);
  const RowView view{values.data(), {}, 0, length, 1.0};
  RowHull row(view, chunk_size);
  Chunk scratch(chunk_size, false);
  std::int64_t chunk_vertices = 0;  // the paper's H
  for (std::int64_t j = 0; j < row.chunks(); ++j) {
    ASSERT_TRUE(row.add_chunk(j, &scratch));
    const std::vector<std::int64_t> vertices = vertices_of(row.node(j), row.mask());
    ASSERT_EQ(vertices, exact_hull(values, row.chunk_begin(j), row.chunk_end(j))) << "chunk " << j;
    chunk_vertices += static_cast<std::int64_t>(vertices.size());
  }
  row.place_chunks();

  std::int64_t walk_steps = 0;
  std::int64_t merges = 0;
  for (int level = 0; level < row.levels(); ++level) {
    const std::int64_t half = std::int64_t{1} << level;
    for (std::int64_t i = 0; i < row.merges(level); ++i) {
      const std::int64_t left = 2 * half * i;
      const std::int64_t right = left + half;
      ASSERT_LT(right, row.chunks());
      const auto before = static_cast<std::int64_t>(vertices_of(row.node(left), row.mask()).size() +
                                                    vertices_of(row.node(right), row.mask()).size()) -
                          1;  // the shared point is one
      const std::int64_t right_end = row.node(right).end;
      const BridgeWork work = row.merge(level, i);
      ++merges;

      const std::vector<std::int64_t> vertices = vertices_of(row.node(left), row.mask());
      ASSERT_EQ(vertices, exact_hull(values, row.chunk_begin(left), right_end))
          << "level " << level << ", merge " << i;
      const std::int64_t removed = before - static_cast<std::int64_t>(vertices.size());
      ASSERT_LE(work.walk_steps, 3 * removed + 2) << removed << " vertices removed";
      ASSERT_LE(work.walk_steps, RowHull::kWalkCap);
      ASSERT_EQ(work.search_turns > 0, work.searched);
      walk_steps += work.walk_steps;

      // At most one segment a chunk, each inside its own.
      const Hull node = row.node(left);
      ASSERT_LE(node.count, std::min(2 * half, row.chunks() - left));
      for (std::int64_t s = 0; s < node.count; ++s) {
        ASSERT_LE(node.segments[s].first, node.segments[s].last);
        ASSERT_EQ(node.segments[s].first / chunk_size, node.segments[s].last / chunk_size);
        if (s > 0) {
          ASSERT_LT(node.segments[s - 1].last / chunk_size, node.segments[s].first / chunk_size);
        }
      }
    }
  }
  EXPECT_EQ(merges, row.chunks() - 1);
  EXPECT_LE(walk_steps, 3 * chunk_vertices + 2 * row.chunks());
  EXPECT_EQ(row.node(0).end, length);
}

std::string test_name(const testing::TestParamInfo<std::tuple<Family, std::int64_t>>& parameters) {
  return std::string(std::get<0>(parameters.param).name) + "_" +
         std::to_string(std::get<1>(parameters.param));
}

INSTANTIATE_TEST_SUITE_P(Families, MergeTree,
                         testing::Combine(testing::ValuesIn(kFamilies),
                                          testing::Values<std::int64_t>(32, 128, 1024)),
                         test_name);

// Every family of the zoo, weights included, at two chunk sizes: the hull at every node.
TEST(MergeTrees, HoldTheHullAtEveryNode) {
  std::uint64_t seed = 810;
  for (const isofold_test::Family& family : value_families()) {
    for (const std::int64_t chunk_size : {32, 256}) {
      for (const Weighting weighting : {Weighting::none, Weighting::any}) {
        const LongRow row =
            make_long_row(family, 9 * chunk_size + 5, {DataType::float64, weighting, true, false, ++seed});
        const bool weighted = !row.call.weights.empty();
        const RowView view{row.call.values.data(),
                           weighted ? isofold::ConstArray(row.call.weights.data()) : isofold::ConstArray(), 0,
                           static_cast<std::int64_t>(row.call.values.size()), 1.0};
        RowHull hull(view, chunk_size);
        Chunk scratch(chunk_size, weighted);
        for (std::int64_t j = 0; j < hull.chunks(); ++j) ASSERT_TRUE(hull.add_chunk(j, &scratch));
        hull.place_chunks();
        ExactOracle oracle;
        OracleAnswer answer;
        for (int level = 0; level < hull.levels(); ++level) {
          for (std::int64_t i = 0; i < hull.merges(level); ++i) {
            hull.merge(level, i);
            const std::int64_t left = i << (level + 1);
            const std::int64_t begin = hull.chunk_begin(left);
            const Hull node = hull.node(left);
            OracleRow part = row.oracle_row();
            part.values = Doubles(row.call.values.begin() + begin, row.call.values.begin() + node.end);
            if (weighted)
              part.weights = Doubles(row.call.weights.begin() + begin, row.call.weights.begin() + node.end);
            oracle.solve(part, answer);
            std::vector<std::int64_t> expected;
            for (std::size_t k = 0; k < answer.block_starts.size(); ++k) {
              if (answer.block_starts[k] != 0) expected.push_back(begin + static_cast<std::int64_t>(k));
            }
            expected.push_back(node.end);
            ASSERT_EQ(vertices_of(node, hull.mask()), expected)
                << row.name << ", level " << level << ", merge " << i;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace isofold_test
