// Marks what runs unchanged on a CPU and on a GPU.
#pragma once

#if defined(__CUDACC__)
#define ISOFOLD_HOST_DEVICE __host__ __device__
#else
#define ISOFOLD_HOST_DEVICE
#endif

// The same, kept out of line on a GPU: for what is long and rare there. It also keeps exact integers right:
// nvcc 13.0 at -O3 miscompiles exact_pair, product and normalize when all three are inlined into one function
// (ties came out as turns; at -Xcicc -O1, or with any one of the three out of line, they do not).
#if defined(__CUDACC__)
#define ISOFOLD_OUT_OF_LINE __host__ __device__ __noinline__
#else
#define ISOFOLD_OUT_OF_LINE
#endif

// The same for device functions.
#if defined(__CUDACC__)
#define ISOFOLD_DEVICE_OUT_OF_LINE __device__ __noinline__
#else
#define ISOFOLD_DEVICE_OUT_OF_LINE
#endif
