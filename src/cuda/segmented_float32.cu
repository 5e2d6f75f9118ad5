#include "cuda/dot_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_DOT(float)
}  // namespace isofold::cuda
