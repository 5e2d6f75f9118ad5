// Search by a warp: all lanes ask at once.
#pragma once

#include <cstdint>

namespace isofold::cuda {

// The first k in [0, count) for which holds(k), which then holds for all after it, and for the last in any
// case. The answer is near 0 more often than not: steps widen from there, then narrow.
template <class Int, class Holds>
__device__ Int first_that_holds(Int count, Holds holds) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Int low = -1;  // does not hold
  Int high = count - 1;
  bool found = false;
#pragma unroll 1
  for (Int step = 1; !found || high - low > 1; step = found ? (high - low + 31) / 32 : 32 * step) {
    const Int at = low + (lane + 1) * step;
    const unsigned yes = __ballot_sync(0xffffffffU, at >= high || holds(at));
    const int first = yes == 0 ? 32 : __ffs(static_cast<int>(yes)) - 1;
    if (yes != 0 && low + (first + 1) * step < high) high = low + (first + 1) * step;
    low += first * step;
    found = yes != 0;
  }
  return high;
}

}  // namespace isofold::cuda
