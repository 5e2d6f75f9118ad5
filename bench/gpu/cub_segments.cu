#include "gpu/cub_segments.hpp"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include <cub/cub.cuh>

namespace isofold_bench {
namespace {

struct Product {
  const float* a;
  const float* b;
  __host__ __device__ float operator()(std::int64_t i) const { return a[i] * b[i]; }
};

struct Offset {
  std::int64_t length;
  __host__ __device__ std::int64_t operator()(std::int64_t segment) const { return segment * length; }
};

}  // namespace

cudaError_t cub_segmented_dot(void* temporary, std::size_t* bytes, const float* a, const float* b,
                              std::int64_t segments, std::int64_t length, float* out, cudaStream_t stream) {
  const thrust::counting_iterator<std::int64_t> numbers(0);
  const auto products = thrust::make_transform_iterator(numbers, Product{a, b});
  const auto offsets = thrust::make_transform_iterator(numbers, Offset{length});
  return cub::DeviceSegmentedReduce::Sum(temporary, *bytes, products, out, segments, offsets, offsets + 1,
                                         stream);
}

}  // namespace isofold_bench
