// Batches of rows of all classes at once, rows that are refused, and offsets that do not rise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Rows of the zoo's families, of lengths drawn from all classes; a fifth are empty.
FitCase random_batch(Random& random, std::int64_t rows, std::int64_t longest, bool ragged) {
  FitCase batch;
  const DataType type = random.chance(0.5) ? DataType::float32 : DataType::float64;
  const auto weighting = random.below(3);
  const DataType weights_type =
      weighting == 0 ? DataType::none : (weighting == 1 ? DataType::float32 : DataType::float64);
  const auto draw_length = [&]() -> std::int64_t {
    static constexpr std::int64_t kEnds[] = {32, 128, 1024, 8192, 40000};
    if (ragged && random.chance(0.2)) return 0;
    const std::int64_t end = std::min(kEnds[random.below(5)], longest);
    return random.chance(0.3) ? end : random.between(1, end);
  };
  const std::int64_t fixed = draw_length();
  std::vector<double> values;
  std::vector<double> weights;
  batch.offsets = {0};
  const auto& families = value_families();
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t length = ragged ? draw_length() : fixed;
    ZooRow zoo;
    zoo.values_type = type;
    zoo.weights_type = weights_type;
    const auto family = static_cast<std::size_t>(random.below(static_cast<std::int64_t>(families.size())));
    if (length > 0) families[family].fill(random, length, zoo);
    values.insert(values.end(), zoo.values.begin(), zoo.values.end());
    if (weighting != 0) {
      Doubles drawn;
      if (zoo.weights.empty()) fill_weights(random, weights_type, length, drawn);
      for (const double w : zoo.weights) drawn.push_back(quantize(weights_type, w));
      weights.insert(weights.end(), drawn.begin(), drawn.end());
    }
    batch.offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  batch.values = {type, values};
  if (weighting != 0) batch.weights = {weights_type, weights};
  batch.rows = rows;
  if (!ragged) batch.offsets.clear();
  batch.increasing = random.chance(0.5);
  batch.shift = random.below(5);
  if (random.chance(0.2)) {
    batch.lower = -1;
    batch.upper = 1.3;
  }
  return batch;
}

class Batches : public OnDevice, public testing::WithParamInterface<int> {};

TEST_P(Batches, Agree) {
  Random random(2024, static_cast<std::uint64_t>(GetParam()));
  for (int b = 0; b < 6; ++b) {
    const std::int64_t longest = b == 0 ? 40000 : (b < 3 ? 1024 : 128);
    const std::int64_t rows = b == 0 ? 12 : (b < 3 ? 40 : 300);
    FitCase batch = random_batch(random, rows, longest, b != 5);
    batch.name = "batch " + std::to_string(GetParam()) + "." + std::to_string(b);
    simt::shuffle_threads(static_cast<std::uint64_t>(b % 3));
    simt::shuffle_blocks(static_cast<std::uint64_t>(b % 2));
    EXPECT_TRUE(fits_agree(batch));
  }
}

INSTANTIATE_TEST_SUITE_P(Random, Batches, testing::Range(0, 24));

// A bad element of a row, of every kind, at its first, middle or last place, makes the row NaN and one block;
// its neighbours come out as they would without it.
class RefusedRows : public OnDevice, public testing::WithParamInterface<bool> {};

TEST_P(RefusedRows, LeaveTheOthersAlone) {
  const bool ragged = GetParam();
  Random random(7);
  for (const DataType type : {DataType::float32, DataType::float64}) {
    for (const DataType weights_type : {DataType::none, DataType::float32, DataType::float64}) {
      for (const std::int64_t fixed :
           ragged ? std::vector<std::int64_t>{0} : std::vector<std::int64_t>{1, 5, 33, 100, 129, 900, 8193}) {
        std::vector<std::int64_t> lengths(7, fixed);
        if (ragged)
          lengths = {3, 0, 1, 20, 32, 33, 90, 128, 129, 700, 1024, 1025, 0, 5000, 8192, 8193, 20000, 2};
        FitCase batch;
        batch.name = "refused rows of " + std::to_string(fixed);
        batch.offsets = {0};
        for (const std::int64_t length : lengths) batch.offsets.push_back(batch.offsets.back() + length);
        std::vector<double> y(static_cast<std::size_t>(batch.offsets.back()));
        for (double& value : y) value = static_cast<double>(static_cast<float>(random.normal()));
        std::vector<double> w(weights_type == DataType::none ? 0 : y.size());
        for (double& weight : w) weight = static_cast<double>(random.between(1, 9));
        batch.values = {type, y};
        if (!w.empty()) batch.weights = {weights_type, w};
        const auto rows = static_cast<std::int64_t>(lengths.size());
        batch.rows = rows;
        const std::vector<std::int64_t> offsets = batch.offsets;
        if (!ragged) batch.offsets.clear();
        Fit expected = fit_on_cpu(batch, type);

        const auto phase = random.below(2);
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t length = lengths[static_cast<std::size_t>(r)];
          if (length == 0 || r % 2 == phase) continue;
          const std::int64_t place = random.below(3) * (length - 1) / 2;
          const auto at = static_cast<std::size_t>(offsets[static_cast<std::size_t>(r)] + place);
          static constexpr double kBadValues[] = {kNaN, kInfinity, -kInfinity};
          static constexpr double kBadWeights[] = {0.0, -0.0, -1.0, kNaN, kInfinity};
          if (w.empty() || random.chance(0.4)) {
            y[at] = kBadValues[random.below(3)];
          } else {
            w[at] = kBadWeights[random.below(5)];
          }
          for (std::int64_t i = 0; i < length; ++i) {
            const auto k = static_cast<std::size_t>(offsets[static_cast<std::size_t>(r)] + i);
            const HostFloats nan(type, std::vector<double>{kNaN});
            std::copy(nan.bytes.begin(), nan.bytes.end(),
                      expected.values.bytes.begin() + static_cast<std::ptrdiff_t>(k * nan.width()));
            expected.starts[k] = i == 0 ? 1 : 0;
          }
        }
        batch.values = {type, y};
        if (!w.empty()) batch.weights = {weights_type, w};
        simt::shuffle_threads(random.bits() % 3);
        EXPECT_TRUE(same_fit(batch, fit_on_device(batch, type), expected))
            << "values " << (type == DataType::float32 ? 32 : 64) << ", weights "
            << static_cast<int>(weights_type);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, RefusedRows, testing::Bool(),
                         [](const auto& ragged) { return ragged.param ? "Ragged" : "Rectangle"; });

using BadOffsets = OnDevice;

// Offsets that do not rise from 0 to the number of elements: no row can be trusted, so all is NaN, every
// element a block, and nothing outside is touched. Rows may overlap as often as they like: what is allocated
// is enough.
TEST_F(BadOffsets, RefuseTheBatch) {
  constexpr std::int64_t kMax = std::int64_t{1} << 62;
  std::vector<std::vector<std::int64_t>> faulty = {{0, 10, 50, 40, 90, 100},
                                                   {0, 10, 20, 30, -5, 60, 80, 100},
                                                   {3, 50, 100},
                                                   {0, 50, 90},
                                                   {0, 10, 200, 30, 40, 70, 100},
                                                   {0, 20, 40, 60, 80, 101},
                                                   {-1, 20, 40, 100},
                                                   {100, 0},
                                                   {0, kMax, 100},
                                                   {0, kMax, -kMax, 50, 80, 100}};
  for (const std::int64_t length : {8, 40, 2000, 9000}) {  // many times more rows of a class than fit
    std::vector<std::int64_t> offsets;
    for (int round = 0; round < 50; ++round) {
      for (int r = 0; r < 5; ++r) offsets.push_back(r * length);
    }
    faulty.push_back(offsets);
  }
  for (const std::vector<std::int64_t>& offsets : faulty) {
    const std::int64_t total = offsets.back() > 101 ? offsets.back() : 100;
    std::vector<double> y(static_cast<std::size_t>(total));
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<double>(i * i % 7);
    FitCase batch;
    batch.name = "offsets";
    for (std::size_t r = 0; r < offsets.size() && r < 10; ++r) batch.name += " " + std::to_string(offsets[r]);
    batch.values = {DataType::float64, y};
    batch.offsets = offsets;
    const Fit found = fit_on_device(batch, DataType::float64);
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < total; ++i) {
      wrong += std::isnan(found.values[i]) && found.starts[static_cast<std::size_t>(i)] == 1 ? 0 : 1;
    }
    EXPECT_EQ(wrong, 0) << batch.name;
  }
}

}  // namespace
}  // namespace isofold_test
