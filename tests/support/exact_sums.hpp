// Sums of floats as exact integers, narrow (128 and 64 bits) or wide (GMP): the arithmetic under ExactOracle.
#pragma once

#include <gmpxx.h>

#include <cstdint>
#include <vector>

#include "support/float_formats.hpp"

namespace isofold_test {

// Numbers significand 2^exponent, |significand| < 2^106, and how far their bits spread.
class Terms {
 public:
  void clear();
  void push(Int128 significand, int exponent);

  [[nodiscard]] Int128 significand(std::int64_t i) const {
    return items_[static_cast<std::size_t>(i)].significand;
  }
  [[nodiscard]] int exponent(std::int64_t i) const { return items_[static_cast<std::size_t>(i)].exponent; }
  // The exponent all terms are integer multiples of; 0 when all are zero.
  [[nodiscard]] int unit() const { return low_ <= high_ ? low_ : 0; }
  // Bits that hold the magnitude of any partial sum in units.
  [[nodiscard]] int sum_bits() const;
  // How many units term i is, by a shift to the left.
  [[nodiscard]] int shift(std::int64_t i) const { return significand(i) == 0 ? 0 : exponent(i) - unit(); }

 private:
  struct Item {
    Int128 significand;
    int exponent;
  };
  std::vector<Item> items_;
  int low_ = 1;
  int high_ = 0;
};

// (-1)^negative (magnitude + s) 2^exponent with 0 < s < 1 if sticky, else s = 0; at least 64 bits if sticky.
struct Quotient {
  bool negative = false;
  UInt128 magnitude = 0;
  int exponent = 0;
  bool sticky = false;

  [[nodiscard]] std::uint64_t round(DataType type) const {
    return round_to_format(format_of(type), negative, magnitude, exponent, sticky);
  }
};

struct RowTerms {
  Terms products;  // w_i y_i
  Terms weights;
  Terms gradient;
};

// A stack of blocks, each with the sums of its products and weights; and G, the gradient summed over one
// block. NarrowBlocks needs products and gradient of at most 126 bits and weights of at most 63.
class NarrowBlocks {
 public:
  [[nodiscard]] static bool can_hold(const RowTerms& terms);

  void reset(const RowTerms& terms);
  void push(std::int64_t begin, std::int64_t end);  // a new block of these elements
  void absorb();                                    // the last block joins the one before
  [[nodiscard]] int compare_last_two();             // the sign of mean(before last) - mean(last)
  [[nodiscard]] Quotient mean(std::int64_t block) const;
  [[nodiscard]] Quotient weight(std::int64_t block) const;
  void sum_gradient(std::int64_t begin, std::int64_t end);
  [[nodiscard]] Quotient slope(std::int64_t block);                     // G / W
  [[nodiscard]] Quotient gradient(std::int64_t block, std::int64_t i);  // w_i G / W

 private:
  struct Block {
    Int128 total;
    std::uint64_t weight;
  };
  const RowTerms* terms_ = nullptr;
  std::vector<Block> blocks_;
  Int128 gradient_ = 0;
};

class WideBlocks {
 public:
  void reset(const RowTerms& terms);
  void push(std::int64_t begin, std::int64_t end);
  void absorb();
  [[nodiscard]] int compare_last_two();
  [[nodiscard]] Quotient mean(std::int64_t block);
  [[nodiscard]] Quotient weight(std::int64_t block);
  void sum_gradient(std::int64_t begin, std::int64_t end);
  [[nodiscard]] Quotient slope(std::int64_t block);
  [[nodiscard]] Quotient gradient(std::int64_t block, std::int64_t i);

 private:
  struct Block {
    mpz_class total;
    mpz_class weight;
  };
  void add(mpz_class& sum, const Terms& terms, std::int64_t i);
  // numerator 2^exponent / denominator, with 70 bits or more.
  [[nodiscard]] Quotient divide(const mpz_class& numerator, const mpz_class& denominator, int exponent);

  const RowTerms* terms_ = nullptr;
  std::vector<Block> blocks_;  // the first depth_ are the stack
  std::size_t depth_ = 0;
  mpz_class gradient_;
  mpz_class scratch_[4];
};

}  // namespace isofold_test
