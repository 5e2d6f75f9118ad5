#include "cuda/gradient_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_GRADIENT(float, float, float)
ISOFOLD_CUDA_GRADIENT(float, float, double)
}  // namespace isofold::cuda
