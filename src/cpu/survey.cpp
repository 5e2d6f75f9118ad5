#include "cpu/survey.hpp"

#include <algorithm>

namespace isofold::cpu {
namespace {

constexpr double kUnderflow = 0x1p-1070;

// pair_sum gathers what its additions lose in plain doubles. Those losses are exact, too, while fewer than
// 2^13 of them stay below 2^53 units: eight bits less than fact 1 of double_double.hpp grants.
bool exact_as_pair_sum(double magnitude, int unit) {
  return magnitude <= std::numeric_limits<double>::max() && magnitude_exponent(magnitude) + 1 <= unit + 92 &&
         unit >= -1074;
}

double pair_error(double magnitude, double operations) {
  return operations * (16 * kUnitRoundoff * kUnitRoundoff * magnitude + kUnderflow);
}

}  // namespace

void Survey::merge(const Survey& other) {
  allowed = allowed && other.allowed;
  magnitude += other.magnitude;
  weight += other.weight;
  lowest = std::min(lowest, other.lowest);
  highest = std::max(highest, other.highest);
  value_unit.merge(other.value_unit);
  weight_unit.merge(other.weight_unit);
}

int Survey::unit() const { return value_unit.exponent() + weight_unit.exponent(); }

double Survey::total_error(double operations) const {
  return exact_as_pair_sum(magnitude, unit()) ? 0.0 : pair_error(magnitude, operations);
}

double Survey::weight_error(double operations) const {
  return exact_as_pair_sum(weight, weight_unit.exponent()) ? 0.0 : pair_error(weight, operations);
}

}  // namespace isofold::cpu
