// A warp's window on a row: 1,024 elements copied to shared memory while others are worked on, then read a
// tile a lane. Pieces of 16 bytes are permuted within a tile so that neither side meets a bank twice.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>

#include "cuda/team.cuh"

namespace isofold::cuda {

inline constexpr int kGroup = 32 * kTile;

// Where element k of lane `row`'s tile stands.
template <class T>
__device__ int swizzled(int row, int k) {
  constexpr int kAPiece = 16 / sizeof(T);
  return row * kTile + ((k / kAPiece) ^ (row & 7)) * kAPiece + k % kAPiece;
}

// Starts the copy of `count` elements, at most a group; the rest of the group becomes zero. One warp.
template <class T>
__device__ void stage_group(T* to, const T* from, int count) {
  constexpr int kAPiece = 16 / sizeof(T);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (reinterpret_cast<std::uintptr_t>(from) % 16 == 0) {
#pragma unroll
    for (int j = 0; j < kTile / kAPiece; ++j) {
      const int first = (j * 32 + lane) * kAPiece;
      const int missing = min(max(first + kAPiece - count, 0), kAPiece);
      __pipeline_memcpy_async(to + swizzled<T>(first / kTile, first % kTile),
                              from + (missing == kAPiece ? 0 : first), 16, missing * sizeof(T));
    }
  } else {
#pragma unroll 8
    for (int row = 0; row < 32; ++row) {
      const int i = row * kTile + lane;
      const bool present = i < count;
      __pipeline_memcpy_async(to + swizzled<T>(row, lane), from + (present ? i : 0), sizeof(T),
                              present ? 0 : sizeof(T));
    }
  }
}

// Four neighbouring elements, aligned to 16 bytes.
__device__ inline void load_four(const float* from, float (&out)[4]) {
  const float4 four = *reinterpret_cast<const float4*>(from);
  out[0] = four.x;
  out[1] = four.y;
  out[2] = four.z;
  out[3] = four.w;
}
__device__ inline void load_four(const double* from, double (&out)[4]) {
  const double2 low = *reinterpret_cast<const double2*>(from);
  const double2 high = *reinterpret_cast<const double2*>(from + 2);
  out[0] = low.x;
  out[1] = low.y;
  out[2] = high.x;
  out[3] = high.y;
}

// Four neighbouring elements of a lane's tile.
__device__ inline void read_four(const float* staged, int row, int k, float (&out)[4]) {
  load_four(staged + swizzled<float>(row, k), out);
}
__device__ inline void read_four(const double* staged, int row, int k, double (&out)[4]) {
  const double2 low = *reinterpret_cast<const double2*>(staged + swizzled<double>(row, k));
  const double2 high = *reinterpret_cast<const double2*>(staged + swizzled<double>(row, k + 2));
  out[0] = low.x;
  out[1] = low.y;
  out[2] = high.x;
  out[3] = high.y;
}

}  // namespace isofold::cuda
