#include "cuda/gradient_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_GRADIENT(double, double, float)
ISOFOLD_CUDA_GRADIENT(double, double, double)
}  // namespace isofold::cuda
