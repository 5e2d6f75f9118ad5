#include "support/optimality.hpp"

#include <gmpxx.h>

#include <algorithm>
#include <cstdlib>

#include "support/rational_oracle.hpp"

namespace isofold_test {

namespace {

// Sums of w y and of w, in units of their own lowest bits.
class IntegerRow {
 public:
  explicit IntegerRow(const OracleRow& row) : row_(row) {
    for (std::size_t i = 0; i < row.values.size(); ++i) {
      const Parts y = parts_of(row.values[i]);
      const Parts w = weight(i);
      if (y.significand != 0) product_unit_ = std::min(product_unit_, y.exponent + w.exponent);
      weight_unit_ = std::min(weight_unit_, w.exponent);
    }
    if (product_unit_ == kNone) product_unit_ = 0;
  }

  void add(std::size_t i, mpz_class& products, mpz_class& weights) {
    const Parts y = parts_of(row_.values[i]);
    const Parts w = weight(i);
    scratch_ = w.significand;
    mpz_mul_2exp(scratch_.get_mpz_t(), scratch_.get_mpz_t(),
                 static_cast<mp_bitcnt_t>(w.exponent - weight_unit_));
    weights += scratch_;
    if (y.significand == 0) return;
    scratch_ = y.significand;
    scratch_ *= w.significand;
    mpz_mul_2exp(scratch_.get_mpz_t(), scratch_.get_mpz_t(),
                 static_cast<mp_bitcnt_t>(y.exponent + w.exponent - product_unit_));
    products += scratch_;
  }

  [[nodiscard]] int mean_exponent() const { return product_unit_ - weight_unit_; }

 private:
  static constexpr int kNone = 1 << 20;

  [[nodiscard]] Parts weight(std::size_t i) const {
    return row_.weights.empty() ? Parts{1, 0} : parts_of(row_.weights[i]);
  }

  const OracleRow& row_;
  int product_unit_ = kNone;
  int weight_unit_ = kNone;
  mpz_class scratch_;
};

struct Sums {
  mpz_class products = 0;
  mpz_class weights = 0;
};

// The sign of mean(a) - mean(b).
int compare(const Sums& a, const Sums& b) {
  if (sgn(a.products) != sgn(b.products)) return sgn(a.products) < sgn(b.products) ? -1 : 1;
  return cmp(mpz_class(a.products * b.weights), mpz_class(b.products * a.weights));
}

std::uint64_t rounded_mean(DataType type, const Sums& sums, int exponent) {
  mpq_class mean(sums.products, sums.weights);
  if (exponent >= 0) {
    mpq_mul_2exp(mean.get_mpq_t(), mean.get_mpq_t(), static_cast<mp_bitcnt_t>(exponent));
  } else {
    mpq_div_2exp(mean.get_mpq_t(), mean.get_mpq_t(), static_cast<mp_bitcnt_t>(-exponent));
  }
  mean.canonicalize();
  return round_rationally(type, mean);
}

}  // namespace

std::string optimality_violation(const OracleRow& row, const std::vector<std::uint8_t>& block_starts,
                                 const std::vector<std::uint64_t>& fit) {
  const std::size_t n = row.values.size();
  if (block_starts.size() != n || fit.size() != n) return "the answer has another length than the row";
  std::vector<std::uint8_t> group_starts(n, row.tie_starts.empty() ? 1 : 0);
  for (const std::int64_t start : row.tie_starts) group_starts[static_cast<std::size_t>(start)] = 1;
  IntegerRow integers(row);
  const int up = row.increasing ? 1 : -1;
  Sums last;
  for (std::size_t begin = 0; begin < n;) {
    const auto where = [](const char* what, std::size_t i) {
      return std::string(what) + " at " + std::to_string(i);
    };
    if (block_starts[begin] != 1) return where("no block starts", begin);
    if (group_starts[begin] == 0) return where("a block cuts a tie group", begin);
    std::size_t end = begin + 1;
    while (end < n && block_starts[end] == 0) ++end;

    Sums block;
    for (std::size_t i = begin; i < end; ++i) integers.add(i, block.products, block.weights);
    if (begin > 0 && up * compare(last, block) >= 0) return where("the means do not rise", begin);
    Sums prefix;
    for (std::size_t i = begin; i < end; ++i) {
      if (i > begin && group_starts[i] != 0 && up * compare(prefix, block) < 0) {
        return where("a block falls apart", i);
      }
      integers.add(i, prefix.products, prefix.weights);
    }
    const std::uint64_t mean =
        clip_fit(row.fit_type, rounded_mean(row.fit_type, block, integers.mean_exponent()), row.lower_bound,
                 row.upper_bound);
    for (std::size_t i = begin; i < end; ++i) {
      if (fit[i] != mean) return where("the fit is not the block's rounded mean", i);
    }
    std::swap(last, block);
    begin = end;
  }
  return {};
}

}  // namespace isofold_test
