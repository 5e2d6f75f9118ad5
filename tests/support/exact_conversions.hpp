// The library's exact types as fractions, for white-box tests.
#pragma once

#include "exact/certified_sum.hpp"
#include "exact/exact_number.hpp"
#include "support/rational_oracle.hpp"

namespace isofold_test {

inline mpq_class scaled(const mpq_class& x, int exponent) {
  mpq_class result(x);
  if (exponent >= 0) {
    mpq_mul_2exp(result.get_mpq_t(), x.get_mpq_t(), static_cast<mp_bitcnt_t>(exponent));
  } else {
    mpq_div_2exp(result.get_mpq_t(), x.get_mpq_t(), static_cast<mp_bitcnt_t>(-exponent));
  }
  return result;
}

inline mpq_class fraction(const isofold::DoubleDouble& x) { return fraction(x.high) + fraction(x.low); }

template <int Capacity>
mpq_class fraction(const isofold::ExactNumber<Capacity>& x) {
  mpz_class magnitude;
  if (x.size > 0) {
    mpz_import(magnitude.get_mpz_t(), static_cast<std::size_t>(x.size), -1, sizeof(std::uint64_t), 0, 0,
               x.limb);
  }
  return x.sign * scaled(magnitude, x.exponent);
}

}  // namespace isofold_test
