#include "cuda/gradient_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_GRADIENT(float, Unweighted, float)
ISOFOLD_CUDA_GRADIENT(float, Unweighted, double)
}  // namespace isofold::cuda
