#include "support/long_row.hpp"

#include <cmath>

namespace isofold_test {

namespace {

constexpr const char* kWeightingNames[] = {"no weights", "weights 1 to 9", "weights e^-8 to e^8",
                                           "any weights", "weights whose sum overflows"};

Doubles make_weights(Random& random, Weighting weighting, DataType type, std::int64_t length) {
  Doubles weights;
  if (weighting == Weighting::any) fill_weights(random, type, length, weights);
  if (weighting == Weighting::ones_to_nine || weighting == Weighting::extreme) {
    for (std::int64_t i = 0; i < length; ++i) {
      weights.push_back(weighting == Weighting::extreme ? quantize(type, std::exp(16 * random.unit() - 8))
                                                        : static_cast<double>(random.between(1, 9)));
    }
  }
  if (weighting == Weighting::overflowing) {
    for (std::int64_t i = 0; i < length; ++i) {
      weights.push_back(quantize(type, largest_finite(type) * (0.5 + 0.5 * random.unit())));
    }
  }
  return weights;
}

}  // namespace

OracleRow LongRow::oracle_row() const {
  OracleRow row;
  row.values = call.values;
  row.weights = call.weights;
  row.gradient = gradient.gradient;
  row.increasing = call.increasing;
  row.lower_bound = call.lower_bound;
  row.upper_bound = call.upper_bound;
  row.values_type = call.values_type;
  row.fit_type = call.chosen_fit_type();
  row.gradient_values_type = call.values_type;
  row.gradient_weights_type = gradient.gradient_weights_type;
  return row;
}

LongRow make_long_row(const Family& family, std::int64_t length, const LongRowOptions& options) {
  Random random(options.seed, static_cast<std::uint64_t>(length));
  ZooRow zoo;
  zoo.values_type = options.type;
  zoo.weights_type = options.weighting == Weighting::none ? DataType::none : options.type;
  family.fill(random, length, zoo);
  LongRow row;
  row.call.values = std::move(zoo.values);
  row.call.values_type = row.call.weights_type = options.type;
  row.call.increasing = options.increasing;
  const bool own_weights = !zoo.weights.empty() && options.weighting == Weighting::any;
  row.call.weights =
      own_weights ? std::move(zoo.weights) : make_weights(random, options.weighting, options.type, length);
  for (double& w : row.call.weights) w = quantize(options.type, w);
  if (options.with_gradient) fill_gradient(random, options.type, length, row.gradient.gradient);
  row.name = std::string(family.name) + ", " + std::to_string(length) + " elements, " +
             name_of(options.type) + ", " + kWeightingNames[static_cast<int>(options.weighting)] +
             (options.increasing ? ", up" : ", down");
  return row;
}

}  // namespace isofold_test
