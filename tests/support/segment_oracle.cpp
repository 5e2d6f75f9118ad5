#include "support/segment_oracle.hpp"

#include <algorithm>
#include <cmath>

namespace isofold_test {
namespace {

constexpr int kLowest = -2200;
constexpr int kHighest = 2200;

mpz_class integer(Int128 x) {
  const bool negative = x < 0;
  const UInt128 magnitude = negative ? -static_cast<UInt128>(x) : static_cast<UInt128>(x);
  mpz_class result(static_cast<unsigned long>(magnitude >> 64));
  result <<= 64;
  result += static_cast<unsigned long>(magnitude);
  return negative ? mpz_class(-result) : result;
}

// magnitude 2^exponent, and a bit more if sticky, rounded.
std::uint64_t rounded(mpz_class magnitude, int exponent, bool sticky, bool negative, DataType type) {
  const auto length = static_cast<int>(mpz_sizeinbase(magnitude.get_mpz_t(), 2));
  if (const int drop = length - 120; drop > 0) {
    const mpz_class kept = magnitude >> static_cast<unsigned>(drop);
    sticky = sticky || (kept << static_cast<unsigned>(drop)) != magnitude;
    magnitude = kept;
    exponent += drop;
  }
  const mpz_class high = magnitude >> 64;
  const UInt128 bits =
      static_cast<UInt128>(high.get_ui()) << 64 | mpz_class(magnitude - (high << 64)).get_ui();
  return round_to_format(format_of(type), negative, bits, exponent, sticky);
}

}  // namespace

SegmentOracle::SegmentOracle() : sums_(kHighest - kLowest) {}

void SegmentOracle::add(Int128 significand, int exponent) {
  Int128& sum = sums_[static_cast<std::size_t>(exponent - kLowest)];
  if (sum == 0) touched_.push_back(exponent);
  sum += significand;
}

int SegmentOracle::collect() {
  total_ = 0;
  if (touched_.empty()) return 0;
  const int lowest = *std::min_element(touched_.begin(), touched_.end());
  for (const int exponent : touched_) {
    Int128& sum = sums_[static_cast<std::size_t>(exponent - kLowest)];
    total_ += integer(sum) << static_cast<unsigned>(exponent - lowest);
    sum = 0;
  }
  touched_.clear();
  return lowest;
}

std::uint64_t SegmentOracle::reduce(isofold::SegmentValue value, const std::vector<double>& a,
                                    const std::vector<double>& b, std::int64_t begin, std::int64_t end,
                                    DataType type) {
  double special = 0.0;
  for (std::int64_t i = begin; i < end; ++i) {
    const double x = a[static_cast<std::size_t>(i)];
    double y = 1.0;
    if (value == isofold::SegmentValue::norm) y = x;
    if (value == isofold::SegmentValue::dot) y = b[static_cast<std::size_t>(i)];
    if (!std::isfinite(x) || !std::isfinite(y)) {
      special += x * y;
      continue;
    }
    const Parts p = parts_of(x);
    const Parts q = parts_of(y);
    if (p.significand == 0 || q.significand == 0) continue;
    add(static_cast<Int128>(p.significand) * q.significand, p.exponent + q.exponent);
  }
  int exponent = collect();
  if (special != 0.0) return encode(type, special);
  const bool negative = total_ < 0;
  mpz_class magnitude = abs(total_);
  if (value != isofold::SegmentValue::norm) return rounded(magnitude, exponent, false, negative, type);
  if (magnitude == 0) return 0;
  // Enough bits for a root of 70 and an even exponent.
  unsigned shift = 160;
  if ((exponent - static_cast<int>(shift)) % 2 != 0) ++shift;
  magnitude <<= shift;
  exponent -= static_cast<int>(shift);
  mpz_class root;
  mpz_class rest;
  mpz_sqrtrem(root.get_mpz_t(), rest.get_mpz_t(), magnitude.get_mpz_t());
  return rounded(root, exponent / 2, rest != 0, false, type);
}

}  // namespace isofold_test
