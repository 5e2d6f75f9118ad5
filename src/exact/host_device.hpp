// Marks what runs unchanged on a CPU and on a GPU.
#pragma once

#if defined(__CUDACC__)
#define ISOFOLD_HOST_DEVICE __host__ __device__
#else
#define ISOFOLD_HOST_DEVICE
#endif
