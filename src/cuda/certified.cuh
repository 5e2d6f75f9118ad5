// Whether answers are certified: always, but in the benchmark that asks what that costs.
#pragma once

#include "exact/certified_sum.hpp"
#include "geometry/turn.hpp"

namespace isofold::cuda {

#ifdef ISOFOLD_UNCERTIFIED
inline constexpr bool kCertified = false;  // doubles are taken for exact, and signs as they come
#else
inline constexpr bool kCertified = true;
#endif

// Whether a b > c d, where the products' residues are representable.
__device__ inline bool product_above(double a, double b, double c, double d) {
  if constexpr (!kCertified) return a * b > c * d;
  return compare_products(a, b, c, d) > 0;
}

}  // namespace isofold::cuda
