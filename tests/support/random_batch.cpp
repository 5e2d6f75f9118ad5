#include "support/random_batch.hpp"

#include <algorithm>

namespace isofold_test {

namespace {

DataType any_type(Random& random) {
  constexpr DataType kTypes[] = {DataType::float64, DataType::float64, DataType::float64, DataType::float32,
                                 DataType::float32, DataType::float32, DataType::float16, DataType::bfloat16};
  return kTypes[random.below(8)];
}

DataType usually(Random& random, DataType type, double probability) {
  return random.chance(probability) ? type : any_type(random);
}

double any_bound(Random& random, DataType type) {
  switch (random.below(6)) {
    case 0:
      return any_magnitude(random, type);
    case 1:
      return 0.0;
    case 2:
      return static_cast<double>(random.between(-20, 20)) * 0.1;  // not a number of the narrower types
    default:
      return 1.5 * random.normal();
  }
}

void choose_bounds(Random& random, OracleRow& row) {
  if (random.chance(0.65)) return;
  const double a = any_bound(random, row.values_type);
  const double b = random.chance(0.1) ? a : any_bound(random, row.values_type);
  if (!random.chance(0.2)) row.lower_bound = std::min(a, b);
  if (!random.chance(0.2)) row.upper_bound = std::max(a, b);
}

// What all rows of the batch have in common, as a row without elements.
OracleRow choose_common(Random& random, Batch& batch) {
  OracleRow common;
  batch.values_type = any_type(random);
  batch.weights_type = random.chance(0.4) ? DataType::none : any_type(random);
  batch.gradient_type = random.chance(0.3) ? DataType::none : usually(random, batch.values_type, 0.6);
  batch.tied = random.chance(0.25);
  common.increasing = random.chance(0.5);
  common.values_type = batch.values_type;
  common.fit_type = usually(random, batch.values_type, 0.75);
  common.gradient_values_type = usually(random, batch.values_type, 0.75);
  if (batch.gradient_type != DataType::none && random.chance(0.6)) {
    common.gradient_weights_type = usually(random, batch.values_type, 0.75);
  }
  choose_bounds(random, common);
  return common;
}

std::int64_t any_length(Random& random, std::int64_t most) {
  constexpr std::int64_t kEdges[] = {0, 1, 2, 3, 31, 32, 33, 63, 64, 65};
  const std::int64_t length = random.chance(0.2) ? kEdges[random.below(10)] : random.between(0, most);
  return std::min(length, most);
}

void choose_ties(Random& random, OracleRow& row) {
  const std::int64_t most = random.between(1, 9);
  for (std::int64_t i = 0; i < row.length(); i += random.between(1, most)) row.tie_starts.push_back(i);
}

void fill_row(Random& random, const Batch& batch, const Family& family, std::int64_t length, OracleRow& row) {
  ZooRow zoo;
  zoo.values_type = batch.values_type;
  zoo.weights_type = batch.weights_type;
  if (length > 0) {
    family.fill(random, length, zoo);
    if (random.chance(0.1)) std::reverse(zoo.values.begin(), zoo.values.end());
  }
  row.values = std::move(zoo.values);
  if (batch.weights_type != DataType::none) {
    if (zoo.weights.empty() || random.chance(0.3)) {
      fill_weights(random, batch.weights_type, length, row.weights);
    } else {
      for (const double w : zoo.weights) row.weights.push_back(quantize(batch.weights_type, w));
    }
  }
  if (batch.gradient_type != DataType::none) fill_gradient(random, batch.gradient_type, length, row.gradient);
  if (batch.tied) choose_ties(random, row);
}

std::string list(const char* name, const std::vector<double>& numbers) {
  std::string text = std::string("  ") + name + " = {";
  for (std::size_t i = 0; i < numbers.size(); ++i) text += (i == 0 ? "" : ", ") + hex(numbers[i]);
  return text + "}\n";
}

}  // namespace

Batch make_batch(const BatchOptions& options, std::int64_t index) {
  Batch batch;
  batch.index = index;
  Random random(options.seed, static_cast<std::uint64_t>(index) << 1);
  const OracleRow common = choose_common(random, batch);
  batch.rectangle = random.chance(0.1);
  const std::int64_t row_length = any_length(random, options.max_length);
  constexpr std::int64_t kChunkSizes[] = {32, 64, 0};
  const std::int64_t chunk_size = kChunkSizes[random.below(3)];
  batch.executor.chunk_size = options.chunk_size < 0 ? chunk_size : options.chunk_size;
  batch.executor.backend = options.backend;
  batch.executor.threads = random.chance(0.9) ? 1 : (random.chance(0.5) ? 2 : 7);
  batch.layout = {random.below(16), random.chance(0.5) ? 0 : 16, random.chance(0.5)};
  const auto& families = value_families();
  for (std::int64_t k = 0; k < kRowsPerBatch; ++k) {
    Random row_random(options.seed, static_cast<std::uint64_t>(index * kRowsPerBatch + k) << 1 | 1);
    const auto drawn = static_cast<std::size_t>(row_random.below(static_cast<std::int64_t>(families.size())));
    const Family& family = options.family != nullptr ? *options.family : families[drawn];
    const std::int64_t length = any_length(row_random, options.max_length);
    batch.rows.push_back(common);
    batch.families.push_back(family.name);
    fill_row(row_random, batch, family, batch.rectangle ? row_length : length, batch.rows.back());
  }
  return batch;
}

std::string describe(const Batch& batch, std::size_t index) {
  const OracleRow& row = batch.rows[index];
  std::string text = "  " + std::string(row.increasing ? "increasing" : "decreasing") + ", values " +
                     name_of(batch.values_type) + ", weights " + name_of(batch.weights_type) + ", fit " +
                     name_of(row.fit_type) + ", bounds " + hex(row.lower_bound) + " to " +
                     hex(row.upper_bound) + ", gradient " + name_of(batch.gradient_type) + " to " +
                     name_of(row.gradient_values_type) + " and " + name_of(row.gradient_weights_type) +
                     ", chunk size " + std::to_string(batch.executor.chunk_size) + ", threads " +
                     std::to_string(batch.executor.threads) + "\n";
  text += list("values", row.values);
  if (!row.weights.empty()) text += list("weights", row.weights);
  if (!row.gradient.empty()) text += list("gradient", row.gradient);
  if (!row.tie_starts.empty()) {
    text += "  tie starts = {";
    for (const std::int64_t start : row.tie_starts) text += (start == 0 ? "" : ", ") + std::to_string(start);
    text += "}\n";
  }
  return text;
}

}  // namespace isofold_test
