// The threads that solve one row or chunk together: a lane, part of a warp, a warp or a block, a tile a
// thread.
#pragma once

#include <cstdint>

#include "exact/double_double.hpp"

namespace isofold::cuda {

inline constexpr int kBlock = 256;  // threads, and tiles, of a block
inline constexpr int kTile = 32;    // elements of a tile: one mask word

// The block's memory whose size the launch gives.
__device__ inline unsigned char* dynamic_shared() {
#if defined(__CUDACC__)
  extern __shared__ __align__(16) unsigned char memory[];
#else
  alignas(16) static unsigned char memory[1 << 18];
#endif
  return memory;
}

// Over a warp; one instruction from compute capability 8.0 on.
__device__ inline std::uint32_t warp_min(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xffffffffU, x);
#else
  for (int step = 1; step < 32; step *= 2) x = min(x, __shfl_xor_sync(0xffffffffU, x, step));
  return x;
#endif
}
__device__ inline int warp_min(int x) {
  constexpr std::uint32_t kSign = 0x80000000U;  // signed numbers in the order of unsigned ones
  return static_cast<int>(warp_min(static_cast<std::uint32_t>(x) ^ kSign) ^ kSign);
}
__device__ inline std::uint32_t warp_max(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xffffffffU, x);
#else
  for (int step = 1; step < 32; step *= 2) x = max(x, __shfl_xor_sync(0xffffffffU, x, step));
  return x;
#endif
}
__device__ inline int warp_sum(int x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_add_sync(0xffffffffU, x);
#else
  for (int step = 1; step < 32; step *= 2) x += __shfl_xor_sync(0xffffffffU, x, step);
  return x;
#endif
}
__device__ inline std::uint32_t warp_or(std::uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_or_sync(0xffffffffU, x);
#else
  for (int step = 1; step < 32; step *= 2) x |= __shfl_xor_sync(0xffffffffU, x, step);
  return x;
#endif
}

// Shared scratch of the block-wide operations.
struct TeamScratch {
  double doubles[2 * kBlock / 32];
  unsigned long long words[kBlock / 32];
};

template <int Size>
struct Team {
  static_assert(Size == kBlock || (Size <= 32 && (Size & (Size - 1)) == 0));
  static constexpr int kSize = Size;
  static constexpr int kTeams = kBlock / Size;
  TeamScratch* scratch;

  __device__ static int rank() { return static_cast<int>(threadIdx.x) % Size; }
  __device__ static int index() { return static_cast<int>(threadIdx.x) / Size; }
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ static unsigned mask() {
    if constexpr (Size >= 32) return 0xffffffffU;
    return ((1U << (Size & 31)) - 1U) << (lane() / Size * Size);
  }
  __device__ static void sync() {
    if constexpr (Size <= 32) {
      __syncwarp(mask());
    } else {
      __syncthreads();
    }
  }

  // All threads get the combination of all values; `combine` is associative and commutative.
  template <class Combine>
  __device__ unsigned long long reduce(unsigned long long x, Combine combine) const {
    constexpr int kWidth = Size < 32 ? Size : 32;
#pragma unroll
    for (int step = 1; step < kWidth; step *= 2) x = combine(x, __shfl_xor_sync(mask(), x, step, kWidth));
    if constexpr (Size > 32) {
      __syncthreads();
      if (lane() == 0) scratch->words[warp()] = x;
      __syncthreads();
      x = scratch->words[0];
#pragma unroll
      for (int i = 1; i < Size / 32; ++i) x = combine(x, scratch->words[i]);
    }
    return x;
  }
  __device__ double reduce_sum(double x) const {  // rounds: for magnitudes
    constexpr int kWidth = Size < 32 ? Size : 32;
#pragma unroll
    for (int step = 1; step < kWidth; step *= 2) x += __shfl_xor_sync(mask(), x, step, kWidth);
    if constexpr (Size > 32) {
      __syncthreads();
      if (lane() == 0) scratch->doubles[warp()] = x;
      __syncthreads();
      x = scratch->doubles[0];
#pragma unroll
      for (int i = 1; i < Size / 32; ++i) x += scratch->doubles[i];
    }
    return x;
  }

  // The sum of the values of all lower ranks, and of all.
  template <class Sum>
  struct Scan {
    Sum before;
    Sum all;
  };
  __device__ Scan<double> scan(double x) const {
    return scan_impl<double>(
        x, [](double v, int d, unsigned m) { return __shfl_up_sync(m, v, d, kWidth()); },
        [](double v, int l, unsigned m) { return __shfl_sync(m, v, l, kWidth()); });
  }
  __device__ Scan<DoubleDouble> scan(DoubleDouble x) const {
    return scan_impl<DoubleDouble>(
        x,
        [](DoubleDouble v, int d, unsigned m) {
          return DoubleDouble{__shfl_up_sync(m, v.high, d, kWidth()), __shfl_up_sync(m, v.low, d, kWidth())};
        },
        [](DoubleDouble v, int l, unsigned m) {
          return DoubleDouble{__shfl_sync(m, v.high, l, kWidth()), __shfl_sync(m, v.low, l, kWidth())};
        });
  }
  __device__ Scan<int> scan(int x) const {
    return scan_impl<int>(
        x, [](int v, int d, unsigned m) { return __shfl_up_sync(m, v, d, kWidth()); },
        [](int v, int l, unsigned m) { return __shfl_sync(m, v, l, kWidth()); });
  }

 private:
  __device__ static constexpr int kWidth() { return Size < 32 ? Size : 32; }

  template <class Sum, class Up, class From>
  __device__ Scan<Sum> scan_impl(Sum x, Up up, From from) const {
    const int position = rank() % kWidth();
    Sum inclusive = x;
#pragma unroll
    for (int step = 1; step < kWidth(); step *= 2) {
      const Sum other = up(inclusive, step, mask());
      if (position >= step) inclusive = other + inclusive;
    }
    Sum before = up(inclusive, 1, mask());
    if (position == 0) before = Sum{};
    Sum all = from(inclusive, kWidth() - 1, mask());
    if constexpr (Size > 32) {
      auto* totals = reinterpret_cast<Sum*>(scratch->doubles);
      __syncthreads();
      if (lane() == 0) totals[warp()] = all;
      __syncthreads();
      Sum running{};
      Sum mine{};
#pragma unroll
      for (int i = 0; i < Size / 32; ++i) {
        if (i == warp()) mine = running;
        running = running + totals[i];
      }
      before = mine + before;
      all = running;
    }
    return {before, all};
  }
};

}  // namespace isofold::cuda
