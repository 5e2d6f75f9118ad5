// A second oracle, slow and written from the definition: fractions and the min-max formula. It checks the
// first.
#pragma once

#include <gmpxx.h>

#include "support/oracle_row.hpp"

namespace isofold_test {

// fit_i = max over a <= i of min over b >= i of mean(a..b), in fractions; a block starts where the fit
// changes. O(n^3) for n tie groups.
[[nodiscard]] OracleAnswer solve_rationally(const OracleRow& row);

[[nodiscard]] mpq_class fraction(double x);

// x rounded to nearest, ties to even, as the type's bits; found by scaling x to units of its last place.
[[nodiscard]] std::uint64_t round_rationally(DataType type, const mpq_class& x);

}  // namespace isofold_test
