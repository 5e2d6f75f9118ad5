#include "cuda/gradient_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_GRADIENT(float, double, float)
ISOFOLD_CUDA_GRADIENT(float, double, double)
}  // namespace isofold::cuda
