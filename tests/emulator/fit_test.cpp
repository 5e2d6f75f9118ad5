// The fit's kernels against the CPU executor, bit by bit: single shapes, all types, both directions.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/shapes.hpp"
#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"
#include "support/case_file.hpp"
#include "support/random.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

enum class Weights { none, float32, float64 };
const char* const kWeightNames[] = {"", ", weights float32", ", weights float64"};

// `rows` rows of a shape. Shapes without weights of their own get some where weights are asked for; those
// with some are left out where they are not.
FitCase shape_case(const std::string& shape, std::int64_t rows, std::int64_t length, DataType type,
                   Weights weighting, std::uint64_t seed) {
  std::vector<double> values;
  std::vector<double> weights;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<double> y;
    std::vector<double> w;
    fill_shape(shape, length, seed + static_cast<std::uint64_t>(r), type == DataType::float32, y, w);
    values.insert(values.end(), y.begin(), y.end());
    for (std::int64_t i = 0; i < length; ++i) {
      weights.push_back(w.empty() ? static_cast<double>(1 + (i + r) % 9) : w[static_cast<std::size_t>(i)]);
    }
  }
  FitCase row;
  row.name = shape + ", " + std::to_string(rows) + " x " + std::to_string(length) +
             (type == DataType::float32 ? ", float32" : ", float64") +
             kWeightNames[static_cast<int>(weighting)];
  row.rows = rows;
  row.values = {type, values};
  if (weighting == Weights::float32) row.weights = {DataType::float32, weights};
  if (weighting == Weights::float64) row.weights = {DataType::float64, weights};
  return row;
}

class FitOfShape : public OnDevice, public testing::WithParamInterface<std::string> {
 protected:
  // Every type pair, the directions in turn; threads in another order each time.
  void check(const std::vector<std::int64_t>& lengths) {
    std::uint64_t draw = 1;
    for (const std::int64_t length : lengths) {
      const std::int64_t rows = length <= 128 ? 70 : (length <= 1024 ? 5 : (length < 8000 ? 2 : 1));
      for (const DataType type : {DataType::float32, DataType::float64}) {
        for (const Weights weighting : {Weights::none, Weights::float32, Weights::float64}) {
          FitCase row = shape_case(GetParam(), rows, length, type, weighting, draw);
          row.shift = static_cast<std::int64_t>(draw % 5);
          row.increasing = (draw / 2 + static_cast<std::uint64_t>(length)) % 3 != 0;
          if (!row.increasing) row.name += ", down";
          simt::shuffle_threads(draw % 4);
          EXPECT_TRUE(fits_agree(row));
          ++draw;
        }
      }
    }
  }
};

TEST_P(FitOfShape, Short) { check({1, 5, 16, 33, 100, 129, 300, 1000, 1024, 1025, 2000}); }
TEST_P(FitOfShape, Long) { check({8192, 8193, 20000}); }

INSTANTIATE_TEST_SUITE_P(Shapes, FitOfShape, testing::ValuesIn(shape_names()),
                         [](const auto& shape) { return shape.param; });

// Rows of few chunks, of all shapes in one batch: warps merge those with few vertices, blocks the others.
TEST(RowsOfFewChunks, OfAllShapesTogether) {
  Random random(31);
  for (const DataType type : {DataType::float32, DataType::float64}) {
    for (const Weights weighting : {Weights::none, Weights::float32, Weights::float64}) {
      FitCase batch;
      batch.offsets = {0};
      std::vector<double> values;
      std::vector<double> weights;
      for (const std::string& shape : shape_names()) {
        const std::int64_t length =
            random.chance(0.5) ? random.between(8193, 17000) : random.between(17000, 70000);
        const FitCase row =
            shape_case(shape, 1, length, DataType::float64, Weights::float64, random.below(1000));
        for (std::int64_t i = 0; i < length; ++i) {
          values.push_back(quantize(type, row.values[i]));
          weights.push_back(quantize(DataType::float32, row.weights[i]));
        }
        batch.offsets.push_back(static_cast<std::int64_t>(values.size()));
      }
      batch.name = std::string("few chunks") + (type == DataType::float32 ? ", float32" : ", float64") +
                   kWeightNames[static_cast<int>(weighting)];
      batch.rows = static_cast<std::int64_t>(shape_names().size());
      batch.values = {type, values};
      if (weighting == Weights::float32) batch.weights = {DataType::float32, weights};
      if (weighting == Weights::float64) batch.weights = {DataType::float64, weights};
      simt::shuffle_blocks(static_cast<std::uint64_t>(random.below(3)));
      EXPECT_TRUE(fits_agree(batch));
    }
  }
  simt::shuffle_blocks(0);
}

// More than 64 chunks: the tree has two levels. Who arrives last at its nodes must not matter.
class FitOfTwoLevels : public OnDevice, public testing::WithParamInterface<std::string> {};

TEST_P(FitOfTwoLevels, InAnyOrder) {
  struct Types {
    DataType values;
    Weights weights;
  };
  for (const Types types :
       {Types{DataType::float32, Weights::none}, Types{DataType::float64, Weights::float32}}) {
    FitCase row = shape_case(GetParam(), 1, 600011, types.values, types.weights, 5);
    const Fit expected = fit_on_cpu(row, types.values);
    for (const std::uint64_t seed : {0U, 1U, 2U}) {
      simt::shuffle_blocks(seed);
      simt::shuffle_threads(seed);
      EXPECT_TRUE(same_fit(row, fit_on_device(row, types.values), expected)) << "order " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, FitOfTwoLevels,
                         testing::Values("noise", "increasing", "half", "cliff", "specks"),
                         [](const auto& shape) { return shape.param; });

using Fits = OnDevice;

// Weights of which no two can be added, under values that mostly rise: the joints of chunks are judged near
// by.
TEST_F(Fits, WeightsWhoseSumsOverflow) {
  Random random(17);
  for (const DataType type : {DataType::float32, DataType::float64}) {
    for (const std::int64_t length : {8193, 20000}) {
      std::vector<double> values;
      std::vector<double> weights;
      for (std::int64_t i = 0; i < length; ++i) {
        values.push_back(1e-40 * (static_cast<double>(i - length) - (i % 7 == 5 ? 1.5 : 0.0)));
        weights.push_back(1.7e308 * (1 - 0.4 * random.unit()));
      }
      FitCase row;
      row.name = "largest weights, " + std::to_string(length);
      row.values = {type, values};
      row.weights = {DataType::float64, weights};
      EXPECT_TRUE(same_fit(row, fit_on_device(row, type), fit_on_cpu(row, type)));
    }
  }
}

// Light elements beside a weight that takes nearly all bits of any sum: what their abscissae are off by.
TEST_F(Fits, LightWeightsBesideHeavyOnes) {
  Random random(19);
  for (int run = 0; run < 1500; ++run) {
    const std::int64_t length = run % 100 == 0 ? 9001 : random.between(129, 1500);
    ZooRow zoo;
    zoo.values_type = run % 2 == 0 ? DataType::float32 : DataType::float64;
    zoo.weights_type = run % 3 == 0 ? DataType::float32 : DataType::float64;
    find_family("anchored")->fill(random, length, zoo);
    FitCase row;
    row.name = "anchored, run " + std::to_string(run);
    row.values = {zoo.values_type, zoo.values};
    std::vector<double> weights;
    for (const double w : zoo.weights) weights.push_back(quantize(zoo.weights_type, w));
    row.weights = {zoo.weights_type, weights};
    row.increasing = random.chance(0.7);
    EXPECT_TRUE(fits_agree(row));
  }
}

TEST_F(Fits, ExactCases) {
  const std::vector<IsotonicCase> cases = read_isotonic_cases(ISOFOLD_TEST_DATA "/isotonic_cases.json");
  int served = 0;
  for (const IsotonicCase& known : cases) {
    if (known.type != DataType::float32 && known.type != DataType::float64) continue;
    FitCase row;
    row.name = known.name;
    row.values = {known.type, known.values};
    row.weights = {known.type, known.weights};
    row.increasing = known.increasing;
    Fit expected{{known.type, known.fit}, std::vector<std::uint8_t>(known.values.size())};
    for (const std::int64_t start : known.block_starts) expected.starts[static_cast<std::size_t>(start)] = 1;
    EXPECT_TRUE(same_fit(row, fit_on_device(row, known.type), expected));
    ++served;
  }
  EXPECT_EQ(served, 120);
}

// Bounds, outputs of the other type, at every alignment.
TEST_F(Fits, BoundsTypesAlignment) {
  std::int64_t shift = 0;
  for (const std::int64_t length : {7, 40, 130, 1000, 9001, 40000}) {
    for (const char* shape : {"noise", "decimals", "increasing"}) {
      for (const DataType type : {DataType::float32, DataType::float64}) {
        for (const DataType to : {DataType::float32, DataType::float64}) {
          const auto weighting = static_cast<Weights>(shift % 3);
          FitCase row = shape_case(shape, length < 1000 ? 9 : 1, length, type, weighting, 3);
          row.shift = shift++ % 8;
          row.lower = shift % 2 == 0 ? 0.1 : -INFINITY;
          row.upper = shift % 4 < 2 ? 1.7 : INFINITY;
          row.increasing = shift % 5 != 0;
          row.name += to == DataType::float32 ? ", to float32" : ", to float64";
          EXPECT_TRUE(same_fit(row, fit_on_device(row, to), fit_on_cpu(row, to))) << "shift " << row.shift;
        }
      }
    }
  }
}

// The filter's heights run in floats, whose range is less than that of values, weights and their products.
TEST_F(Fits, ScalesBeyondFloats) {
  for (const int exponent :
       {-1000, -160, -148, -120, 100, 119, 122, 123, 124, 125, 126, 127, 128, 130, 160, 900}) {
    for (const char* shape : {"noise", "decimals", "steep_noise"}) {
      for (const auto weighting : {Weights::none, Weights::float32, Weights::float64}) {
        FitCase row = shape_case(shape, 40, 500, DataType::float64, weighting, 5);
        std::vector<double> scaled(row.values.bytes.size() / sizeof(double));
        std::memcpy(scaled.data(), row.values.bytes.data(), row.values.bytes.size());
        for (double& value : scaled) value = std::ldexp(value, exponent);
        row.values = {DataType::float64, scaled};
        row.name += ", times 2^" + std::to_string(exponent);
        EXPECT_TRUE(fits_agree(row));
      }
    }
  }
}

TEST_F(Fits, TiesAreAnErrorHere) {
  const double values[] = {1, 2};
  const std::int64_t ties[] = {0, 2};
  double fit[2];
  isofold::IsotonicProblem problem;
  problem.values = values;
  problem.rows = isofold::Rows::single(2);
  problem.tie_offsets = ties;
  problem.tie_groups = 1;
  isofold::Executor executor;
  executor.backend = isofold::Backend::cuda;
  const isofold::Status status = isofold::isotonic_regression(problem, {fit, nullptr}, executor);
  EXPECT_EQ(status.code, isofold::StatusCode::device_error);
}

}  // namespace
}  // namespace isofold_test
