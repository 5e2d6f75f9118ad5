// The CUDA names that src/cuda uses, for the host (see ../simt.hpp). Device memory is memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "emulator/simt.hpp"

#define __device__
#define __host__
#define __global__
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __align__(bytes) __attribute__((aligned(bytes)))

#define threadIdx (::simt::thread_index)
#define blockIdx (::simt::block_index)

struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

using std::isfinite;
template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

// Bits and conversions.
template <class To, class From>
To simt_bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clzll(long long x) {
  return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x));
}
inline long long __double_as_longlong(double x) { return simt_bits<long long>(x); }
inline double __longlong_as_double(long long x) { return simt_bits<double>(x); }
inline unsigned __float_as_uint(float x) { return simt_bits<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return simt_bits<float>(x); }
inline int __float_as_int(float x) { return simt_bits<int>(x); }
inline float __int_as_float(int x) { return simt_bits<float>(x); }
inline int __double2loint(double x) { return static_cast<int>(simt_bits<std::uint64_t>(x)); }
inline int __double2hiint(double x) { return static_cast<int>(simt_bits<std::uint64_t>(x) >> 32); }
inline double __hiloint2double(int high, int low) {
  return simt_bits<double>(static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32 |
                           static_cast<std::uint32_t>(low));
}
inline float __double2float_rd(double x) {
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) > x ? std::nextafterf(near, -INFINITY) : near;
}
inline float __double2float_ru(double x) {
  const auto near = static_cast<float>(x);
  return static_cast<double>(near) < x ? std::nextafterf(near, INFINITY) : near;
}
inline float __fdividef(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fmaf(a, b, c); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }

// A one in every byte that differs.
inline unsigned __vsetne4(unsigned a, unsigned b) {
  unsigned result = 0;
  for (int byte = 0; byte < 32; byte += 8) {
    if (((a ^ b) >> byte & 0xffU) != 0) result |= 1U << byte;
  }
  return result;
}

// Memory.
template <class T>
T __ldcg(const T* address) {
  return *address;
}
inline void __threadfence() {}
template <class T, class U>
T atomicAdd(T* address, U x) {
  const T old = *address;
  *address = static_cast<T>(old + x);
  return old;
}
template <class T, class U>
T atomicOr(T* address, U x) {
  const T old = *address;
  *address |= x;
  return old;
}
template <class T, class U>
T atomicAnd(T* address, U x) {
  const T old = *address;
  *address &= x;
  return old;
}
template <class T, class U>
T atomicMin(T* address, U x) {
  const T old = *address;
  *address = min(old, static_cast<T>(x));
  return old;
}
template <class T, class U>
T atomicMax(T* address, U x) {
  const T old = *address;
  *address = max(old, static_cast<T>(x));
  return old;
}
template <class T, class U>
T atomicExch(T* address, U x) {
  const T old = *address;
  *address = x;
  return old;
}

// Blocks and warps.
inline void __syncthreads() { simt::barrier(false); }
inline int __syncthreads_or(int vote) { return simt::barrier(vote != 0) != 0 ? 1 : 0; }
inline int __syncthreads_and(int vote) { return simt::barrier(vote == 0) == 0 ? 1 : 0; }
inline void __syncwarp(unsigned mask = 0xffffffffU) {
  std::uint64_t all[32];
  simt::meet(mask, 0, all);
}
inline unsigned __ballot_sync(unsigned mask, int vote) {
  std::uint64_t all[32];
  simt::meet(mask, vote != 0 ? 1 : 0, all);
  unsigned result = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) != 0 && all[lane] != 0) result |= 1U << lane;
  }
  return result;
}
inline int __any_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) != 0 ? 1 : 0; }
inline int __all_sync(unsigned mask, int vote) { return __ballot_sync(mask, vote) == mask ? 1 : 0; }
template <class T>
T simt_from_lane(unsigned mask, T mine, int lane) {
  std::uint64_t word = 0;
  std::memcpy(&word, &mine, sizeof mine);
  std::uint64_t all[32];
  simt::meet(mask, word, all);
  T result;
  std::memcpy(&result, &all[lane], sizeof result);
  return result;
}
inline int simt_lane() { return static_cast<int>(threadIdx.x % 32); }
template <class T>
T __shfl_sync(unsigned mask, T mine, int from, int width = 32) {
  return simt_from_lane(mask, mine, simt_lane() / width * width + from % width);
}
template <class T>
T __shfl_up_sync(unsigned mask, T mine, int step, int width = 32) {
  const bool inside = simt_lane() % width >= step;
  return simt_from_lane(mask, mine, inside ? simt_lane() - step : simt_lane());
}
template <class T>
T __shfl_down_sync(unsigned mask, T mine, int step, int width = 32) {
  const bool inside = simt_lane() % width + step < width;
  return simt_from_lane(mask, mine, inside ? simt_lane() + step : simt_lane());
}
template <class T>
T __shfl_xor_sync(unsigned mask, T mine, int step, int width = 32) {
  (void)width;
  return simt_from_lane(mask, mine, simt_lane() ^ step);
}
// Lanes may be asked for in any company: one at a time is a fair answer.
inline unsigned __activemask() { return 1U << simt_lane(); }
template <class T>
unsigned __match_any_sync(unsigned mask, T mine) {
  std::uint64_t word = 0;
  std::memcpy(&word, &mine, sizeof mine);
  std::uint64_t all[32];
  simt::meet(mask, word, all);
  unsigned result = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) != 0 && all[lane] == word) result |= 1U << lane;
  }
  return result;
}

// The runtime.
using cudaStream_t = void*;
using cudaError_t = int;
enum : int { cudaSuccess = 0, cudaErrorMemoryAllocation = 2, cudaErrorNotSupported = 801 };
enum : int {
  cudaFuncAttributeMaxDynamicSharedMemorySize,
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
inline const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorMemoryAllocation ? "out of memory" : "operation not supported";
}
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == cudaDevAttrMultiProcessorCount ? 2 : 232448;
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, int, int) {
  return cudaSuccess;
}
inline cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*memory == nullptr) return cudaErrorMemoryAllocation;
  std::memset(*memory, 0xa5, bytes);  // whoever reads what nobody wrote gets it wrong
  return cudaSuccess;
}
inline cudaError_t cudaFreeAsync(void* memory, cudaStream_t) {
  std::free(memory);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}

// As tests use it, which hold "device" arrays.
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
inline cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return cudaMallocAsync(memory, bytes, nullptr);
}
inline cudaError_t cudaFree(void* memory) { return cudaFreeAsync(memory, nullptr); }
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
