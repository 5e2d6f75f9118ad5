// The one predicate of the solver: does the diagram bend up at b? A point that is not strictly below the
// chord of two others is no vertex of the lower hull.
#pragma once

#include <cmath>

#include "exact/exact_number.hpp"
#include "exact/host_device.hpp"
#include "geometry/point.hpp"

namespace isofold {

enum class Turn { down_or_straight, up, undecided };  // up: b is strictly below the chord from a to d

// high + low of b - a as one double, and its error: the rounding of the result, of the low parts, and the
// points' own.
struct Difference {
  double value;
  double error;
};

ISOFOLD_HOST_DEVICE inline Difference difference(const CertifiedSum& a, const CertifiedSum& b) {
  const TwoTerms high = two_sum(b.value.high, -a.value.high);
  const double value = high.high + (high.low + (b.value.low - a.value.low));
  const double representation =
      4 * kUnitRoundoff * kUnitRoundoff * (std::fabs(a.value.high) + std::fabs(b.value.high));
  return {value, kUnitRoundoff * std::fabs(value) + representation + (a.error + b.error)};
}

// The sign of w_ab s_bd - s_ab w_bd in doubles: does the slope rise from the edge ab to the edge bd?
//
// With each difference within its error, |error of a product| <= x dy + y dx + dx dy + u |x y|, plus 2^-1074
// where it underflows. Everything is doubled to cover the rounding of the bound itself. An infinity or a NaN
// anywhere leaves both comparisons false.
ISOFOLD_HOST_DEVICE inline Turn turn_of_differences(const Difference& w_ab, const Difference& s_ab,
                                                    const Difference& w_bd, const Difference& s_bd) {
  const double rise = w_ab.value * s_bd.value;
  const double fall = s_ab.value * w_bd.value;
  const double determinant = rise - fall;
  const double bound =
      2 * ((std::fabs(w_ab.value) + w_ab.error) * s_bd.error + std::fabs(s_bd.value) * w_ab.error +
           (std::fabs(s_ab.value) + s_ab.error) * w_bd.error + std::fabs(w_bd.value) * s_ab.error +
           2 * kUnitRoundoff * (std::fabs(rise) + std::fabs(fall))) +
      0x1p-1070;
  if (determinant > bound) return Turn::up;
  if (determinant < -bound) return Turn::down_or_straight;
  return Turn::undecided;
}

// The sign of (W_b - W_a)(S_d - S_b) - (S_b - S_a)(W_d - W_b) in doubles.
ISOFOLD_HOST_DEVICE inline Turn turn_in_doubles(const Point& a, const Point& b, const Point& d) {
  return turn_of_differences(difference(a.weight, b.weight), difference(a.total, b.total),
                             difference(b.weight, d.weight), difference(b.total, d.total));
}

// The sign of a b - c d where the products' residues are representable. Rounding is monotone, so two
// products that round apart compare as they round, and equal ones by what rounding lost.
ISOFOLD_HOST_DEVICE inline int compare_products(double a, double b, double c, double d) {
  const TwoTerms left = two_product(a, b);
  const TwoTerms right = two_product(c, d);
  if (left.high != right.high) return left.high > right.high ? 1 : -1;
  return (left.low > right.low) - (left.low < right.low);
}

// The sign of w_ab s_bd - s_ab w_bd where these are exact and the widths single doubles, from the eight terms
// of the products. A pass of two_sum from the last term to the first leaves their sum in the first and what
// rounding lost, ever smaller, in the others; where slopes are equal all cancels within a few. Products out
// of the range in which they split exactly leave it undecided.
ISOFOLD_HOST_DEVICE inline Turn turn_of_terms(double w_ab, const DoubleDouble& s_ab, double w_bd,
                                              const DoubleDouble& s_bd) {
  const TwoTerms rise = two_product(w_ab, s_bd.high);
  const TwoTerms rise_low = two_product(w_ab, s_bd.low);
  const TwoTerms fall = two_product(-w_bd, s_ab.high);
  const TwoTerms fall_low = two_product(-w_bd, s_ab.low);
  const auto splits = [](const TwoTerms& terms, double factor) {
    return factor == 0 || (std::fabs(terms.high) >= 0x1p-900 && std::fabs(terms.high) <= 0x1p1000);
  };
  if (!splits(rise, s_bd.high) || !splits(rise_low, s_bd.low) || !splits(fall, s_ab.high) ||
      !splits(fall_low, s_ab.low)) {
    return Turn::undecided;
  }
  constexpr int kTerms = 8;
  double terms[kTerms] = {rise.high,     fall.high,     rise.low,     fall.low,
                          rise_low.high, fall_low.high, rise_low.low, fall_low.low};
  constexpr int kPasses = 6;
  for (int pass = 0; pass < kPasses; ++pass) {
    double rest = 0;
    for (int i = kTerms - 2; i >= 0; --i) {
      const TwoTerms sum = two_sum(terms[i], terms[i + 1]);
      terms[i] = sum.high;
      terms[i + 1] = sum.low;
      rest += std::fabs(sum.low);
    }
    if (rest == 0 || std::fabs(terms[0]) > 2 * rest) return terms[0] > 0 ? Turn::up : Turn::down_or_straight;
  }
  return Turn::undecided;
}

// The same from exact sums, of any width.
template <int W, int S>
ISOFOLD_HOST_DEVICE bool turns_up(const ExactNumber<W>& w_ab, const ExactNumber<S>& s_ab,
                                  const ExactNumber<W>& w_bd, const ExactNumber<S>& s_bd) {
  return compare(product(s_bd, w_ab), product(s_ab, w_bd)) > 0;
}

// Whether b is strictly below the chord from a to d. `exact_turn(a, b, d)` answers from the elements
// themselves; it is asked only where doubles cannot decide and the pairs are not exact.
template <class ExactTurn>
ISOFOLD_HOST_DEVICE bool is_vertex(const Point& a, const Point& b, const Point& d, ExactTurn&& exact_turn) {
  const Turn fast = turn_in_doubles(a, b, d);
  if (fast != Turn::undecided) return fast == Turn::up;
  const bool exact = a.total.exact() && b.total.exact() && d.total.exact() && a.weight.exact() &&
                     b.weight.exact() && d.weight.exact();
  if (!exact) return exact_turn(a, b, d);
  const DoubleDouble w_ab = b.weight.value - a.weight.value;
  const DoubleDouble s_ab = b.total.value - a.total.value;
  const DoubleDouble w_bd = d.weight.value - b.weight.value;
  const DoubleDouble s_bd = d.total.value - b.total.value;
  if (w_ab.low == 0 && w_bd.low == 0) {
    const Turn turn = turn_of_terms(w_ab.high, s_ab, w_bd.high, s_bd);
    if (turn != Turn::undecided) return turn == Turn::up;
  }
  return turns_up(exact_pair(w_ab), exact_pair(s_ab), exact_pair(w_bd), exact_pair(s_bd));
}

}  // namespace isofold
