// What is known of a stretch of data, and what that proves about sums of it.
#pragma once

#include <limits>

#include "exact/certified_sum.hpp"

namespace isofold::cpu {

// What one streaming pass over a chunk learns.
struct Survey {
  bool allowed = true;                                        // values finite, weights finite and positive
  double magnitude = 0.0;                                     // sum of |w y|
  double weight = 0.0;                                        // sum of w
  double lowest = std::numeric_limits<double>::infinity();    // of the values
  double highest = -std::numeric_limits<double>::infinity();  //
  UnitTracker value_unit;
  UnitTracker weight_unit;  // of ones where there are no weights

  void merge(const Survey& other);
  // Exponent of a unit of all w y.
  [[nodiscard]] int unit() const;
  // The errors of sums of this data as pairs, over at most `operations` additions in a chain: zero where they
  // are exact.
  [[nodiscard]] double total_error(double operations) const;
  [[nodiscard]] double weight_error(double operations) const;
};

}  // namespace isofold::cpu
