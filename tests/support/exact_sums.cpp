#include "support/exact_sums.hpp"

#include <algorithm>

namespace isofold_test {

namespace {

UInt128 magnitude_of(Int128 x) { return x < 0 ? -static_cast<UInt128>(x) : static_cast<UInt128>(x); }

// x y for x < 2^127, y < 2^64: 192 bits.
struct UInt192 {
  UInt128 high;
  std::uint64_t low;
};

UInt192 multiply(UInt128 x, std::uint64_t y) {
  const UInt128 low = static_cast<UInt128>(static_cast<std::uint64_t>(x)) * y;
  return {(x >> 64) * y + (low >> 64), static_cast<std::uint64_t>(low)};
}

int compare(const UInt192& a, const UInt192& b) {
  if (a.high != b.high) return a.high < b.high ? -1 : 1;
  if (a.low != b.low) return a.low < b.low ? -1 : 1;
  return 0;
}

void assign(mpz_class& target, UInt128 x) {
  mpz_set_ui(target.get_mpz_t(), static_cast<std::uint64_t>(x >> 64));
  mpz_mul_2exp(target.get_mpz_t(), target.get_mpz_t(), 64);
  mpz_add_ui(target.get_mpz_t(), target.get_mpz_t(), static_cast<std::uint64_t>(x));
}

UInt128 low_bits(const mpz_class& x) {
  return static_cast<UInt128>(mpz_getlimbn(x.get_mpz_t(), 1)) << 64 | mpz_getlimbn(x.get_mpz_t(), 0);
}

int bit_length_of(const mpz_class& x) {
  return x == 0 ? 0 : static_cast<int>(mpz_sizeinbase(x.get_mpz_t(), 2));
}

static_assert(sizeof(mp_limb_t) == 8, "limbs of 64 bits");

}  // namespace

void Terms::clear() {
  items_.clear();
  low_ = 1;
  high_ = 0;
}

void Terms::push(Int128 significand, int exponent) {
  items_.push_back({significand, exponent});
  if (significand == 0) return;
  const int top = exponent + bit_length(magnitude_of(significand));
  if (low_ > high_) {
    low_ = exponent;
    high_ = top;
  } else {
    low_ = std::min(low_, exponent);
    high_ = std::max(high_, top);
  }
}

int Terms::sum_bits() const {
  return low_ > high_ ? 0 : high_ - low_ + bit_length(static_cast<UInt128>(items_.size()));
}

bool NarrowBlocks::can_hold(const RowTerms& terms) {
  return terms.products.sum_bits() <= 126 && terms.weights.sum_bits() <= 63 &&
         terms.gradient.sum_bits() <= 126;
}

void NarrowBlocks::reset(const RowTerms& terms) {
  terms_ = &terms;
  blocks_.clear();
}

void NarrowBlocks::push(std::int64_t begin, std::int64_t end) {
  Block block{0, 0};
  for (std::int64_t i = begin; i < end; ++i) {
    block.total += terms_->products.significand(i) * (Int128{1} << terms_->products.shift(i));
    block.weight += static_cast<std::uint64_t>(terms_->weights.significand(i)) << terms_->weights.shift(i);
  }
  blocks_.push_back(block);
}

void NarrowBlocks::absorb() {
  const Block last = blocks_.back();
  blocks_.pop_back();
  blocks_.back().total += last.total;
  blocks_.back().weight += last.weight;
}

int NarrowBlocks::compare_last_two() {
  const Block& a = blocks_[blocks_.size() - 2];
  const Block& b = blocks_.back();
  const bool a_negative = a.total < 0;
  const bool b_negative = b.total < 0;
  if (a_negative != b_negative) return a_negative ? -1 : 1;
  const int order =
      compare(multiply(magnitude_of(a.total), b.weight), multiply(magnitude_of(b.total), a.weight));
  return a_negative ? -order : order;
}

Quotient NarrowBlocks::mean(std::int64_t block) const {
  const auto& [total, weight] = blocks_[static_cast<std::size_t>(block)];
  if (total == 0) return {};
  const UInt128 magnitude = magnitude_of(total);
  const int shift = 127 - bit_length(magnitude);
  const UInt128 numerator = magnitude << shift;
  const UInt128 quotient = numerator / weight;
  return {total < 0, quotient, terms_->products.unit() - terms_->weights.unit() - shift,
          quotient * weight != numerator};
}

Quotient NarrowBlocks::weight(std::int64_t block) const {
  return {false, blocks_[static_cast<std::size_t>(block)].weight, terms_->weights.unit(), false};
}

void NarrowBlocks::sum_gradient(std::int64_t begin, std::int64_t end) {
  gradient_ = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    gradient_ += terms_->gradient.significand(i) * (Int128{1} << terms_->gradient.shift(i));
  }
}

Quotient NarrowBlocks::slope(std::int64_t block) {
  if (gradient_ == 0) return {};
  const std::uint64_t weight = blocks_[static_cast<std::size_t>(block)].weight;
  const UInt128 magnitude = magnitude_of(gradient_);
  const int shift = 127 - bit_length(magnitude);
  const UInt128 numerator = magnitude << shift;
  const UInt128 quotient = numerator / weight;
  return {gradient_ < 0, quotient, terms_->gradient.unit() - terms_->weights.unit() - shift,
          quotient * weight != numerator};
}

Quotient NarrowBlocks::gradient(std::int64_t block, std::int64_t i) {
  if (gradient_ == 0) return {};
  const std::uint64_t weight = blocks_[static_cast<std::size_t>(block)].weight;
  UInt192 n = multiply(magnitude_of(gradient_), static_cast<std::uint64_t>(terms_->weights.significand(i)));
  int exponent = terms_->weights.exponent(i) + terms_->gradient.unit() - terms_->weights.unit();
  // Bring the leading bit to place 190, so that the quotient's upper two words hold 64 bits at least.
  int shift = n.high != 0 ? 127 - bit_length(n.high) : 127 + 64 - bit_length(n.low);
  exponent -= shift;
  if (shift >= 64) {
    n.high = n.high << 64 | n.low;
    n.low = 0;
    shift -= 64;
    if (shift >= 64) {
      n.high <<= 64;
      shift -= 64;
    }
  }
  if (shift > 0) {
    n.high = n.high << shift | n.low >> (64 - shift);
    n.low <<= shift;
  }
  const UInt128 quotient = n.high / weight;
  const UInt128 rest = (n.high - quotient * weight) << 64 | n.low;
  return {gradient_ < 0, quotient, exponent + 64, rest != 0};
}

void WideBlocks::reset(const RowTerms& terms) {
  terms_ = &terms;
  depth_ = 0;
}

void WideBlocks::add(mpz_class& sum, const Terms& terms, std::int64_t i) {
  const Int128 significand = terms.significand(i);
  assign(scratch_[0], magnitude_of(significand));
  mpz_mul_2exp(scratch_[0].get_mpz_t(), scratch_[0].get_mpz_t(), static_cast<mp_bitcnt_t>(terms.shift(i)));
  if (significand < 0) {
    sum -= scratch_[0];
  } else {
    sum += scratch_[0];
  }
}

void WideBlocks::push(std::int64_t begin, std::int64_t end) {
  if (depth_ == blocks_.size()) blocks_.emplace_back();
  Block& block = blocks_[depth_++];
  block.total = 0;
  block.weight = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    add(block.total, terms_->products, i);
    add(block.weight, terms_->weights, i);
  }
}

void WideBlocks::absorb() {
  --depth_;
  blocks_[depth_ - 1].total += blocks_[depth_].total;
  blocks_[depth_ - 1].weight += blocks_[depth_].weight;
}

int WideBlocks::compare_last_two() {
  const Block& a = blocks_[depth_ - 2];
  const Block& b = blocks_[depth_ - 1];
  const int a_sign = sgn(a.total);
  const int b_sign = sgn(b.total);
  if (a_sign != b_sign) return a_sign < b_sign ? -1 : 1;
  scratch_[1] = a.total * b.weight;
  scratch_[2] = b.total * a.weight;
  return cmp(scratch_[1], scratch_[2]);
}

Quotient WideBlocks::divide(const mpz_class& numerator, const mpz_class& denominator, int exponent) {
  if (numerator == 0) return {};
  mpz_class& n = scratch_[1];
  mpz_class& d = scratch_[2];
  mpz_class& quotient = scratch_[3];
  n = abs(numerator);
  d = denominator;
  const int shift = 72 - (bit_length_of(n) - bit_length_of(d));
  if (shift > 0) {
    n <<= static_cast<mp_bitcnt_t>(shift);
  } else {
    d <<= static_cast<mp_bitcnt_t>(-shift);
  }
  mpz_tdiv_qr(quotient.get_mpz_t(), n.get_mpz_t(), n.get_mpz_t(), d.get_mpz_t());
  return {numerator < 0, low_bits(quotient), exponent - shift, n != 0};
}

Quotient WideBlocks::mean(std::int64_t block) {
  const Block& b = blocks_[static_cast<std::size_t>(block)];
  return divide(b.total, b.weight, terms_->products.unit() - terms_->weights.unit());
}

Quotient WideBlocks::weight(std::int64_t block) {
  scratch_[0] = 1;
  return divide(blocks_[static_cast<std::size_t>(block)].weight, scratch_[0], terms_->weights.unit());
}

void WideBlocks::sum_gradient(std::int64_t begin, std::int64_t end) {
  gradient_ = 0;
  for (std::int64_t i = begin; i < end; ++i) add(gradient_, terms_->gradient, i);
}

Quotient WideBlocks::slope(std::int64_t block) {
  return divide(gradient_, blocks_[static_cast<std::size_t>(block)].weight,
                terms_->gradient.unit() - terms_->weights.unit());
}

Quotient WideBlocks::gradient(std::int64_t block, std::int64_t i) {
  assign(scratch_[0], magnitude_of(terms_->weights.significand(i)));
  scratch_[0] *= gradient_;
  return divide(scratch_[0], blocks_[static_cast<std::size_t>(block)].weight,
                terms_->weights.exponent(i) + terms_->gradient.unit() - terms_->weights.unit());
}

}  // namespace isofold_test
