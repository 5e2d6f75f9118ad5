#include "cuda/gradient_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_GRADIENT(double, float, float)
ISOFOLD_CUDA_GRADIENT(double, float, double)
}  // namespace isofold::cuda
