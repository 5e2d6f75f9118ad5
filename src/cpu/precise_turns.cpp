#include "cpu/precise_turns.hpp"

#include "cpu/counters.hpp"
#include "geometry/turn.hpp"

namespace isofold::cpu {
namespace {

// value / 2^unit, an integer.
Int128 in_units(double value, int unit) {
  const DecodedDouble d = decode(value);
  if (d.mantissa == 0) return 0;
  const int shift = d.exponent - unit;
  // Bits below the unit are zeros, which the mantissa may still carry.
  const Int128 magnitude =
      shift >= 0 ? static_cast<Int128>(d.mantissa) << shift : static_cast<Int128>(d.mantissa >> -shift);
  return d.negative ? -magnitude : magnitude;
}

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

void PreciseTurns::reset(const double* values, const double* weights, std::int64_t count,
                         const Survey& survey) {
  values_ = values;
  weights_ = weights;
  count_ = count;
  survey_ = &survey;
  state_ = State::unbuilt;
}

std::optional<bool> PreciseTurns::bends_up(std::int64_t a, std::int64_t b, std::int64_t d) {
  tally(Count::precise_turns);
  if (state_ == State::unbuilt) build();
  if (state_ == State::integers) {
    const Int128 rise = (total_integers_[at(d)] - total_integers_[at(b)]) * weight_units(a, b);
    const Int128 fall = (total_integers_[at(b)] - total_integers_[at(a)]) * weight_units(b, d);
    return rise > fall;
  }
  std::optional<bool> answer = false;
  const bool up = is_vertex(point(a), point(b), point(d), [&](const Point&, const Point&, const Point&) {
    answer.reset();
    return false;
  });
  return answer ? std::optional(up) : std::nullopt;
}

void PreciseTurns::build() {
  if (fits_integers()) {
    build_integers();
  } else {
    build_pairs();
  }
}

// Totals, weights and their products, in units: two bits are spared for the rounding of the magnitudes.
bool PreciseTurns::fits_integers() const {
  const int total_unit = survey_->unit();
  const int weight_unit = survey_->weight_unit.exponent();
  // A sum that overflowed to infinity says nothing about its bits.
  constexpr double kLargest = std::numeric_limits<double>::max();
  if (!(survey_->magnitude <= kLargest && survey_->weight <= kLargest) || total_unit < -1074) return false;
  const int total_bits = magnitude_exponent(survey_->magnitude) - total_unit;
  const int weight_bits = magnitude_exponent(survey_->weight) - weight_unit;
  return weight_bits <= 61 && total_bits + weight_bits <= 124;
}

void PreciseTurns::build_integers() {
  state_ = State::integers;
  total_integers_.resize(at(count_ + 1));
  const int unit = survey_->unit();
  Int128 total = 0;
  if (weights_ == nullptr) {
    for (std::int64_t i = 0; i < count_; ++i) {
      total_integers_[at(i)] = total;
      total += in_units(values_[i], unit);
    }
    total_integers_[at(count_)] = total;
    return;
  }
  weight_integers_.resize(at(count_ + 1));
  const int value_unit = survey_->value_unit.exponent();
  const int weight_unit = survey_->weight_unit.exponent();
  std::int64_t weight = 0;
  for (std::int64_t i = 0; i < count_; ++i) {
    total_integers_[at(i)] = total;
    weight_integers_[at(i)] = weight;
    const auto w = static_cast<std::int64_t>(in_units(weights_[i], weight_unit));
    total += in_units(values_[i], value_unit) * w;
    weight += w;
  }
  total_integers_[at(count_)] = total;
  weight_integers_[at(count_)] = weight;
}

Int128 PreciseTurns::weight_units(std::int64_t from, std::int64_t to) const {
  return weights_ == nullptr ? to - from : weight_integers_[at(to)] - weight_integers_[at(from)];
}

void PreciseTurns::build_pairs() {
  state_ = State::pairs;
  total_pairs_.resize(at(count_ + 1));
  DoubleDouble total;
  for (std::int64_t i = 0; i < count_; ++i) {
    total_pairs_[at(i)] = total;
    const TwoTerms term =
        weights_ == nullptr ? TwoTerms{values_[i], 0.0} : two_product(values_[i], weights_[i]);
    total = total + DoubleDouble{term.high, term.low};
  }
  total_pairs_[at(count_)] = total;
  if (weights_ == nullptr) return;
  weight_pairs_.resize(at(count_ + 1));
  DoubleDouble weight;
  for (std::int64_t i = 0; i < count_; ++i) {
    weight_pairs_[at(i)] = weight;
    weight = weight + weights_[i];
  }
  weight_pairs_[at(count_)] = weight;
}

Point PreciseTurns::point(std::int64_t index) const {
  const double operations = static_cast<double>(count_) + 8.0;
  const CertifiedSum weight = weights_ != nullptr
                                  ? CertifiedSum{weight_pairs_[at(index)], survey_->weight_error(operations)}
                                  : CertifiedSum{{static_cast<double>(index), 0.0}, 0.0};
  return {index, weight, {total_pairs_[at(index)], survey_->total_error(operations)}};
}

}  // namespace isofold::cpu
