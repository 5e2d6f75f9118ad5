// CUB's segmented reduce as a dot product, in float32: the contender of time_segments.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace isofold_bench {

// out[s] is the dot of segment s of `length` elements. temporary == nullptr: only sets *bytes.
[[nodiscard]] cudaError_t cub_segmented_dot(void* temporary, std::size_t* bytes, const float* a,
                                            const float* b, std::int64_t segments, std::int64_t length,
                                            float* out, cudaStream_t stream);

}  // namespace isofold_bench
