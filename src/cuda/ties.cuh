// Tied observations on the device: copies of the values and weights in which each group's elements fall, so
// that the untied kernels give the pooled answer (api/tie_order.hpp says why).
//
// The tie offsets are judged where they lie. A row [b, e) is served if the entries from b to e are one run of
// consecutive ones that rises from b to e; any other row gets a NaN among its values, which refuses it.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "isofold/isotonic.hpp"

namespace isofold::cuda {

// Groups are counted 32 elements at a time, in ints.
inline constexpr std::int64_t kMostTiedElements = std::int64_t{1} << 35;

// The device memory that order_ties takes, a multiple of 256 bytes. Values and weights are float32 or
// float64, the latter or absent, and there is at least one element.
[[nodiscard]] cudaError_t tie_scratch(const IsotonicProblem& problem, std::int64_t* bytes);

// Enqueues the ordering. `untied` becomes the problem on the copies, which lie in `scratch`.
[[nodiscard]] cudaError_t order_ties(const IsotonicProblem& problem, void* scratch, cudaStream_t stream,
                                     IsotonicProblem* untied);

}  // namespace isofold::cuda
