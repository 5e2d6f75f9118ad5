#include "support/rational_oracle.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

namespace isofold_test {

namespace {

mpq_class power_of_two(int exponent) {
  mpq_class power(1);
  if (exponent >= 0) {
    mpq_mul_2exp(power.get_mpq_t(), power.get_mpq_t(), static_cast<mp_bitcnt_t>(exponent));
  } else {
    mpq_div_2exp(power.get_mpq_t(), power.get_mpq_t(), static_cast<mp_bitcnt_t>(-exponent));
  }
  return power;
}

// The largest e with 2^e <= x, for x > 0.
int exponent_of(const mpq_class& x) {
  int e = static_cast<int>(mpz_sizeinbase(x.get_num_mpz_t(), 2)) -
          static_cast<int>(mpz_sizeinbase(x.get_den_mpz_t(), 2));
  while (power_of_two(e) > x) --e;
  while (power_of_two(e + 1) <= x) ++e;
  return e;
}

struct Totals {
  mpq_class products;
  mpq_class weights;
};

Totals total(const OracleRow& row, std::size_t begin, std::size_t end) {
  Totals sums{0, 0};
  for (std::size_t i = begin; i < end; ++i) {
    const mpq_class w = row.weights.empty() ? mpq_class(1) : fraction(row.weights[i]);
    sums.products += w * fraction(row.values[i]);
    sums.weights += w;
  }
  return sums;
}

std::vector<std::size_t> group_bounds(const OracleRow& row) {
  std::vector<std::size_t> bounds;
  if (row.tie_starts.empty()) {
    for (std::size_t i = 0; i < row.values.size(); ++i) bounds.push_back(i);
  } else {
    bounds.assign(row.tie_starts.begin(), row.tie_starts.end());
  }
  bounds.push_back(row.values.size());
  return bounds;
}

// The exact fit of every tie group.
std::vector<mpq_class> group_fits(const OracleRow& row, const std::vector<std::size_t>& bounds) {
  const std::size_t groups = bounds.size() - 1;
  std::vector<Totals> sums;
  for (std::size_t k = 0; k < groups; ++k) sums.push_back(total(row, bounds[k], bounds[k + 1]));
  const mpq_class sign = row.increasing ? 1 : -1;
  std::vector<mpq_class> fits;
  for (std::size_t i = 0; i < groups; ++i) {
    std::optional<mpq_class> best;
    for (std::size_t a = 0; a <= i; ++a) {
      Totals run{0, 0};
      std::optional<mpq_class> least;
      for (std::size_t b = a; b < groups; ++b) {
        run.products += sums[b].products;
        run.weights += sums[b].weights;
        if (b < i) continue;
        const mpq_class mean = sign * run.products / run.weights;
        if (!least || mean < *least) least = mean;
      }
      if (!best || *least > *best) best = *least;
    }
    fits.push_back(sign * *best);
  }
  return fits;
}

void differentiate(const OracleRow& row, std::size_t begin, std::size_t end, const mpq_class& mean,
                   OracleAnswer& answer) {
  const bool want_weights = row.gradient_weights_type != DataType::none;
  if (is_clipped(row.values_type, round_rationally(row.values_type, mean), row.lower_bound, row.upper_bound))
    return;
  mpq_class gradient = 0;
  for (std::size_t i = begin; i < end; ++i) {
    if (std::isfinite(row.gradient[i])) {
      gradient += fraction(row.gradient[i]);
      continue;
    }
    for (std::size_t k = begin; k < end; ++k) {
      answer.gradient_values[k] = canonical_nan(row.gradient_values_type);
      if (want_weights) answer.gradient_weights[k] = canonical_nan(row.gradient_weights_type);
    }
    return;
  }
  const mpq_class slope = gradient / total(row, begin, end).weights;
  const double m = decode(DataType::float64, round_rationally(DataType::float64, mean));
  const double q = decode(DataType::float64, round_rationally(DataType::float64, slope));
  const bool one_value = std::all_of(row.values.begin() + static_cast<std::ptrdiff_t>(begin),
                                     row.values.begin() + static_cast<std::ptrdiff_t>(end),
                                     [&](double y) { return y == row.values[begin]; });
  for (std::size_t i = begin; i < end; ++i) {
    const mpq_class w = row.weights.empty() ? mpq_class(1) : fraction(row.weights[i]);
    answer.gradient_values[i] = round_rationally(row.gradient_values_type, w * slope);
    if (want_weights && !one_value) {
      answer.gradient_weights[i] = weight_gradient(row.gradient_weights_type, row.values[i], m, q);
    }
  }
}

}  // namespace

OracleAnswer solve_rationally(const OracleRow& row) {
  const std::size_t n = row.values.size();
  const std::vector<std::size_t> bounds = group_bounds(row);
  const std::vector<mpq_class> fits = group_fits(row, bounds);
  const bool want_gradient = !row.gradient.empty();
  const bool want_weights = want_gradient && row.gradient_weights_type != DataType::none;
  OracleAnswer answer;
  answer.fit.resize(n);
  answer.block_starts.assign(n, 0);
  answer.gradient_values.assign(want_gradient ? n : 0, 0);
  answer.gradient_weights.assign(want_weights ? n : 0, 0);
  for (std::size_t first = 0, last = 0; first < fits.size(); first = last) {
    last = first + 1;
    while (last < fits.size() && fits[last] == fits[first]) ++last;
    const std::size_t begin = bounds[first];
    const std::size_t end = bounds[last];
    const std::uint64_t fit =
        clip_fit(row.fit_type, round_rationally(row.fit_type, fits[first]), row.lower_bound, row.upper_bound);
    for (std::size_t i = begin; i < end; ++i) answer.fit[i] = fit;
    answer.block_starts[begin] = 1;
    answer.block_weights.push_back(
        decode(DataType::float64, round_rationally(DataType::float64, total(row, begin, end).weights)));
    if (want_gradient) differentiate(row, begin, end, fits[first], answer);
  }
  return answer;
}

mpq_class fraction(double x) {
  int exponent = 0;
  const double significand = std::frexp(x, &exponent);
  return mpq_class(std::ldexp(significand, 53)) * power_of_two(exponent - 53);
}

std::uint64_t round_rationally(DataType type, const mpq_class& x) {
  if (x == 0) return 0;
  const Format& format = format_of(type);
  const mpq_class magnitude = abs(x);
  const int unit = std::max(exponent_of(magnitude), format.min_exponent) - format.precision + 1;
  const mpq_class scaled = magnitude / power_of_two(unit);
  mpz_class places = scaled.get_num() / scaled.get_den();
  const mpq_class rest = scaled - places;
  const mpq_class half(1, 2);
  if (rest > half || (rest == half && mpz_odd_p(places.get_mpz_t()))) ++places;
  // places is at most 2^precision: a double holds it and its product with the unit, or that product
  // overflows.
  double rounded = std::ldexp(places.get_d(), unit);
  if (rounded > largest_finite(type)) rounded = HUGE_VAL;
  if (rounded == 0) return 0;
  rounded = x < 0 ? -rounded : rounded;
  // rounded is one of the type's numbers, so that what is left is to spell it.
  if (type == DataType::float64) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &rounded, sizeof bits);
    return bits;
  }
  if (type == DataType::float32 || type == DataType::bfloat16) {
    const auto narrow = static_cast<float>(rounded);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    return type == DataType::float32 ? bits : bits >> 16;
  }
  return encode(type, rounded);
}

}  // namespace isofold_test
