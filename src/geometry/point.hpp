// A point of the cumulative sum diagram: P_k = (W_k, S_k), the sums of w and of w y over the elements before
// k.
#pragma once

#include <cstdint>

#include "exact/certified_sum.hpp"

namespace isofold {

struct Point {
  std::int64_t index;  // k
  CertifiedSum weight;
  CertifiedSum total;
};

}  // namespace isofold
