// Checks an isotonic fit by its optimality conditions instead of by solving the problem again: the blocks
// alone certify themselves, in exact integers.
#pragma once

#include <string>
#include <vector>

#include "support/oracle_row.hpp"

namespace isofold_test {

// The blocks are the fit's maximal ones if and only if their means strictly rise (fall, for a non-increasing
// fit) and, inside each, no run of leading tie groups has a mean below (above) the block's (Barlow et al.
// 1972). And the fit must be each block's mean, rounded and clipped. Returns the first violation, or nothing.
[[nodiscard]] std::string optimality_violation(const OracleRow& row,
                                               const std::vector<std::uint8_t>& block_starts,
                                               const std::vector<std::uint64_t>& fit);

}  // namespace isofold_test
