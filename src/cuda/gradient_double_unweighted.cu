#include "cuda/gradient_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_GRADIENT(double, Unweighted, float)
ISOFOLD_CUDA_GRADIENT(double, Unweighted, double)
}  // namespace isofold::cuda
