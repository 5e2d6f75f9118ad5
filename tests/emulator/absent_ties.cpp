// Tie groups are ordered by CUB, which is not emulated: a call with ties is an error here.
#include "cuda/ties.cuh"

namespace isofold::cuda {

cudaError_t tie_scratch(const IsotonicProblem&, std::int64_t*) { return cudaErrorNotSupported; }

cudaError_t order_ties(const IsotonicProblem&, void*, cudaStream_t, IsotonicProblem*) {
  return cudaErrorNotSupported;
}

}  // namespace isofold::cuda
