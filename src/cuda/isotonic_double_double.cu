#include "cuda/types.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_PAIR(double, double)
}  // namespace isofold::cuda
