// Eight doubles side by side, in the compilers' own vector notation: plain element-wise arithmetic, so that
// every instruction set, and none, computes the same bits.
#pragma once

#include <cstdint>

namespace isofold::cpu {

inline constexpr int kLanes = 8;
using Doubles __attribute__((vector_size(8 * kLanes))) = double;
using Floats __attribute__((vector_size(4 * kLanes))) = float;
using Integers __attribute__((vector_size(8 * kLanes))) = std::int64_t;  // comparisons give -1 and 0

// References rather than values: how vectors are passed differs between instruction sets.
inline __attribute__((always_inline)) void load_lanes(const double* from, Doubles& to) {
  __builtin_memcpy(&to, from, sizeof to);
}

}  // namespace isofold::cpu
