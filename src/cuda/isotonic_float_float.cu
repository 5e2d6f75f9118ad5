#include "cuda/types.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_PAIR(float, float)
}  // namespace isofold::cuda
