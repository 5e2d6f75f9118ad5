#include "cuda/dot_launch.cuh"

namespace isofold::cuda {
ISOFOLD_CUDA_DOT(Float16)
}  // namespace isofold::cuda
