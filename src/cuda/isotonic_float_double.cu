#include "cuda/types.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_PAIR(float, double)
}  // namespace isofold::cuda
