#include "cuda/gradient_checks.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "cuda/gradient_call.hpp"
#include "cuda/shapes.hpp"
#include "support/row_zoo.hpp"

namespace isofold_test {
namespace {

DataType single_if(bool single) { return single ? DataType::float32 : DataType::float64; }

bool same(const GradientCase& row, const char* which, const HostFloats& found, const HostFloats& expected,
          const std::vector<std::uint8_t>& starts) {
  if (expected.count == 0 || found.bytes == expected.bytes) return true;
  std::int64_t wrong = 0;
  std::int64_t at = -1;
  for (std::int64_t i = 0; i < expected.count; ++i) {
    const auto byte = static_cast<std::size_t>(i) * expected.width();
    if (std::memcmp(found.bytes.data() + byte, expected.bytes.data() + byte, expected.width()) == 0) continue;
    if (at < 0) at = i;
    ++wrong;
  }
  std::int64_t begin = at;
  while (begin > 0 && starts[static_cast<std::size_t>(begin)] == 0) --begin;
  std::int64_t end = at + 1;
  while (end < expected.count && starts[static_cast<std::size_t>(end)] == 0) ++end;
  std::printf("%s, gradient in %s: %lld of %lld differ, first at %lld (block %lld..%lld): %a, not %a\n",
              row.name.c_str(), which, static_cast<long long>(wrong), static_cast<long long>(expected.count),
              static_cast<long long>(at), static_cast<long long>(begin), static_cast<long long>(end),
              found[at], expected[at]);
  return false;
}

int compare(const GradientCase& row) {
  const std::vector<std::uint8_t> starts = blocks_on_cpu(row);
  const GradientFloats expected = gradient_on_cpu(row, starts);
  const GradientOnDevice device(row, starts);
  if (!device.enqueue()) return 1;
  check_cuda(cudaDeviceSynchronize(), row.name.c_str());
  bool right = true;
  if (row.out_values != DataType::none) {
    right = same(row, "values", device.out_values.host(), expected.values, starts) && right;
  }
  if (row.out_weights != DataType::none) {
    right = same(row, "weights", device.out_weights.host(), expected.weights, starts) && right;
  }
  if (!device.out_values.margins_intact() || !device.out_weights.margins_intact()) {
    std::printf("%s: wrote outside its outputs\n", row.name.c_str());
    right = false;
  }
  return right ? 0 : 1;
}

// The types of a case, its outputs and the rest that is independent of the rows.
void draw_settings(Random& random, GradientCase& row) {
  row.increasing = random.chance(0.5);
  row.out_values = single_if(random.chance(0.5));
  row.out_weights = single_if(random.chance(0.5));
  const auto absent = random.below(6);
  if (absent < 2) row.out_weights = DataType::none;
  if (absent == 2) row.out_values = DataType::none;
  row.shift = random.below(5);
  if (random.chance(0.25)) {
    row.lower = -1;
    row.upper = 1.3;
  }
}

}  // namespace

int check_gradient_batches(const BatchRange& batches, std::uint64_t seed) {
  int failed = 0;
  std::int64_t rows_done = 0;
  const auto& families = value_families();
  for (std::int64_t b = batches.first; b < batches.end; b += batches.step) {
    Random random(seed + 77, static_cast<std::uint64_t>(b));
    GradientCase batch;
    const DataType type = single_if(random.chance(0.5));
    const DataType weights_type = single_if(random.chance(0.5));
    const DataType gradient_type = single_if(random.chance(0.5));
    const bool weighted = random.chance(0.6);
    const bool rectangle = random.chance(0.2);
    const std::int64_t most = random.chance(0.6) ? 30 : (random.chance(0.6) ? 1500 : 20000);
    const std::int64_t rows = most == 30 ? 4096 : (most == 1500 ? 200 : 20);
    const std::int64_t fixed = random.between(1, most);
    std::vector<double> values;
    std::vector<double> weights;
    std::vector<double> gradient;
    batch.offsets = {0};
    for (std::int64_t r = 0; r < rows; ++r) {
      const std::int64_t length = rectangle ? fixed : random.between(0, most);
      ZooRow zoo;
      zoo.values_type = type;
      zoo.weights_type = weighted ? weights_type : DataType::none;
      const auto family = random.below(static_cast<std::int64_t>(families.size()));
      if (length > 0) families[static_cast<std::size_t>(family)].fill(random, length, zoo);
      values.insert(values.end(), zoo.values.begin(), zoo.values.end());
      if (weighted) {
        Doubles drawn;
        if (zoo.weights.empty()) {
          fill_weights(random, weights_type, length, drawn);
        } else {
          for (const double w : zoo.weights) drawn.push_back(quantize(weights_type, w));
        }
        weights.insert(weights.end(), drawn.begin(), drawn.end());
      }
      Doubles incoming;
      fill_gradient(random, gradient_type, length, incoming);
      const auto kind = random.below(5);
      const double scale = kind == 0 ? 1e-10 : (kind == 1 ? 1e30 : 1.0);
      for (const double g : incoming) {
        gradient.push_back(std::isfinite(g) && scale != 1.0 ? quantize(gradient_type, g * scale) : g);
      }
      batch.offsets.push_back(static_cast<std::int64_t>(values.size()));
    }
    if (rectangle) batch.offsets.clear();
    batch.rows = rows;
    batch.values = {type, values};
    if (weighted) batch.weights = {weights_type, weights};
    batch.gradient = {gradient_type, gradient};
    draw_settings(random, batch);
    batch.name =
        "gradient batch " + std::to_string(b) + (type == DataType::float32 ? ", float32" : ", float64") +
        (!weighted ? "" : (weights_type == DataType::float32 ? ", weights float32" : ", weights float64")) +
        (gradient_type == DataType::float32 ? ", gradient float32" : ", gradient float64");
    failed += compare(batch);
    rows_done += rows;
  }
  std::printf("gradients of random batches: %lld rows\n", static_cast<long long>(rows_done));
  return failed;
}

int check_gradients_of_long_rows(std::int64_t longest, std::uint64_t seed) {
  int failed = 0;
  int done = 0;
  std::uint64_t draw = 0;
  for (const std::int64_t length : {4095LL, 4096LL, 4097LL, 9001LL, 100003LL, 1048576LL, 3000000LL}) {
    if (length > longest) continue;
    for (const std::string& shape : shape_names()) {
      if (length > 300000 && (shape == "wide" || (draw + seed) % 3 != 0)) {
        ++draw;
        continue;
      }
      Random random(seed + 1000, draw++);
      const DataType type = single_if(random.chance(0.5));
      GradientCase row;
      std::vector<double> values;
      std::vector<double> weights;
      fill_shape(shape, length, 7, type == DataType::float32, values, weights);
      if (weights.empty() && random.chance(0.5)) {
        for (std::int64_t i = 0; i < length; ++i) weights.push_back(static_cast<double>(1 + i % 9));
      }
      row.values = {type, values};
      if (!weights.empty()) row.weights = {single_if(random.chance(0.5)), weights};
      const DataType gradient_type = single_if(random.chance(0.5));
      Doubles gradient;
      if (random.chance(0.5)) {
        fill_gradient(random, gradient_type, length, gradient);
      } else {
        for (std::int64_t i = 0; i < length; ++i) gradient.push_back(random.normal());
      }
      if (random.chance(0.2)) gradient[static_cast<std::size_t>(random.below(length))] = NAN;
      row.gradient = {gradient_type, gradient};
      draw_settings(random, row);
      row.name = "gradient of " + shape + ", " + std::to_string(length);
      failed += compare(row);
      ++done;
    }
  }
  std::printf("gradients of long rows: %d\n", done);
  return failed;
}

// Sums next to rounding midpoints among terms that reach over a thousand binary places: 2^53 + 1 (2^24 + 1)
// units divided by a power of two, hidden behind 1e300 - 1e300 and the like. Pairs of doubles cannot decide
// them, within a chunk or over several.
int check_hidden_ties(std::int64_t longest) {
  int failed = 0;
  for (const std::int64_t length : {64LL, 1024LL, 4096LL, 16384LL, 1048576LL, 2097152LL}) {
    if (length > longest) continue;
    for (const bool weighted : {false, true}) {
      for (const bool single : {false, true}) {
        for (const bool single_out : {false, true}) {
          std::vector<double> values;
          std::vector<double> weights;
          std::vector<double> gradient(static_cast<std::size_t>(length), 0.0);
          for (std::int64_t i = 0; i < length; ++i) {
            values.push_back(static_cast<double>(-i));
            if (weighted) weights.push_back(i % 2 == 0 ? 1.0 : 3.0);
          }
          // All where the weights are one. The first element is the largest, so that as values they are one
          // block.
          const double huge = single ? 0x1p100 : 1e300;
          const double large = (single_out ? 0x1p24 : 0x1p53) * 0x1p-20;
          gradient[0] = huge;
          gradient[static_cast<std::size_t>(length / 2)] = -huge;
          gradient[static_cast<std::size_t>(length / 6 * 2)] = large;
          gradient[static_cast<std::size_t>(length - 2)] = 0x1p-20;
          gradient[4] = single ? 0x1p-100 : 1e-300;
          gradient[8] = -gradient[4];
          GradientCase row;
          row.values = {DataType::float64, values};
          if (weighted) row.weights = {DataType::float32, weights};
          row.gradient = {single_if(single), gradient};
          row.out_values = single_if(single_out);
          row.name = "hidden tie of " + std::to_string(length) + (weighted ? ", weighted" : "");
          failed += compare(row);
          if (single != single_out) continue;
          // The same as values: their mean, rounded to even, lies just below the lower bound.
          std::swap(row.values, row.gradient);
          const double mean = large / static_cast<double>(weighted ? 2 * length : length);
          row.lower = single ? static_cast<double>(std::nextafter(static_cast<float>(mean), INFINITY))
                             : std::nextafter(mean, INFINITY);
          row.name += ", values";
          failed += compare(row);
        }
      }
    }
  }
  std::printf("gradients behind hidden ties\n");
  return failed;
}

// One block, in a chunk or over several, from above 3/4 of the largest float64 to below minus that.
int check_gradients_of_far_values() {
  int failed = 0;
  for (const std::int64_t length : {6LL, 300LL, 4096LL, 20001LL}) {
    for (const double incoming : {0.0, 1.0, 0x1p-30}) {
      GradientCase row;
      std::vector<double> values;
      std::vector<double> gradient;
      for (std::int64_t i = 0; i < length; ++i) {
        values.push_back(3 * i < length ? 1.5e308 : -1.5e308);
        gradient.push_back(incoming != 0.0 ? incoming
                                           : (i < length / 2 * 2 ? (i % 2 == 0 ? 1.0 : -1.0) : 0.0));
      }
      row.values = {DataType::float64, values};
      row.gradient = {DataType::float64, gradient};
      row.name = "far values, " + std::to_string(length) + ", incoming " + std::to_string(incoming);
      failed += compare(row);
    }
  }
  std::printf("gradients of far values\n");
  return failed;
}

// Rows that the fit has refused are one block each, and come out NaN; the others are as they would be alone.
int check_refused_gradients() {
  int failed = 0;
  for (const std::int64_t length : {5LL, 100LL, 4096LL, 9001LL}) {
    for (const bool both : {false, true}) {
      const std::int64_t rows = 7;
      std::vector<double> values;
      std::vector<double> none;
      fill_shape("noise", length * rows, 3, false, values, none);
      GradientCase batch;
      batch.name = "refused rows of " + std::to_string(length);
      batch.rows = rows;
      batch.values = {DataType::float64, values};
      batch.weights = {DataType::float64, std::vector<double>(values.size(), 2.0)};
      std::reverse(values.begin(), values.end());
      batch.gradient = {DataType::float32, values};
      std::reverse(values.begin(), values.end());
      if (!both) batch.out_weights = DataType::none;
      std::vector<std::uint8_t> starts = blocks_on_cpu(batch);
      const GradientFloats clean = gradient_on_cpu(batch, starts);
      std::vector<double> y = values;
      std::vector<double> w(values.size(), 2.0);
      y[static_cast<std::size_t>(length + length / 2)] = NAN;
      y[static_cast<std::size_t>(3 * length)] = INFINITY;
      w[static_cast<std::size_t>(6 * length + length - 1)] = 0.0;
      batch.values = {DataType::float64, y};
      batch.weights = {DataType::float64, w};
      const auto refused = [](std::int64_t r) { return r == 1 || r == 3 || r == 6; };
      for (std::int64_t i = 0; i < length * rows; ++i) {
        if (refused(i / length)) starts[static_cast<std::size_t>(i)] = i % length == 0;
      }
      const GradientOnDevice device(batch, starts);
      if (!device.enqueue()) return failed + 1;
      const HostFloats in_values = device.out_values.host();
      const HostFloats in_weights = device.out_weights.host();
      for (std::int64_t i = 0; i < length * rows; ++i) {
        const auto right = [&](const HostFloats& found, const HostFloats& expected) {
          return refused(i / length) ? std::isnan(found[i]) : found[i] == expected[i];
        };
        if (right(in_values, clean.values) && (!both || right(in_weights, clean.weights))) continue;
        std::printf("%s: element %lld\n", batch.name.c_str(), static_cast<long long>(i));
        ++failed;
        break;
      }
    }
  }
  // Offsets that do not rise: all is NaN, and nothing outside is touched.
  GradientCase batch;
  std::vector<double> y(100);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<double>(i % 7);
  batch.values = {DataType::float64, y};
  batch.gradient = batch.values;
  batch.offsets = {0, 10, 50, 90, 100};
  batch.name = "bad offsets";
  const std::vector<std::uint8_t> starts = blocks_on_cpu(batch);
  batch.offsets = {0, 10, 50, 40, 90, 100};
  const GradientOnDevice device(batch, starts);
  if (!device.enqueue()) return failed + 1;
  const HostFloats found = device.out_values.host();
  bool right = device.out_values.margins_intact() && device.out_weights.margins_intact();
  for (std::int64_t i = 0; i < 100; ++i) {
    right = right && std::isnan(found[i]);
  }
  if (!right) {
    std::printf("gradient, bad offsets: not refused\n");
    ++failed;
  }
  std::printf("gradients of refused rows\n");
  return failed;
}

}  // namespace isofold_test
