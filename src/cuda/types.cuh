// Instantiates everything for one pair of value and weight types; each pair is compiled in a file of its own.
#pragma once

#include <cuda_runtime.h>

#include "cuda/launch.cuh"

#define ISOFOLD_CUDA_PAIR(Value, Weight)                                                                     \
  template std::int64_t shared_bytes<Elements<Value, Weight>>();                                             \
  template std::int64_t place_scratch(Plan<Elements<Value, Weight>>&, void*, std::int64_t*);                 \
  template cudaError_t launch_isotonic_regression(const Plan<Elements<Value, Weight>>&, std::int64_t, void*, \
                                                  cudaStream_t);
