// Picks, once, the best build of the streaming passes that this processor runs. All of them compute the same
// bits: contraction is off, and lanes are added up in one order whatever the width of the registers.
#include "cpu/streaming.hpp"

#include <cmath>
#include <limits>

#include "cpu/instruction_set.hpp"
#include "cpu/vector_lanes.hpp"

namespace isofold::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Kernels {
  Statistics (*statistics)(const double*, std::int64_t);
  void (*multiply)(const double*, const double*, std::int64_t, double*);
  void (*prefix_sums)(const double*, std::int64_t, double*);
  void (*rising_words)(const double*, std::int64_t, std::uint32_t*);
  void (*window_words)(const double*, std::int64_t, std::uint32_t*);
  DoubleDouble (*pair_sum)(const double*, const double*, std::int64_t);
  void (*pair_sums_of_tiles)(const double*, const double*, std::int64_t, DoubleDouble*);
  Statistics (*scan_tiles)(const double*, std::int64_t, DoubleDouble*, double*);
};

#define ISOFOLD_KERNELS                                                                                     \
  Kernels {                                                                                                 \
    statistics, multiply, prefix_sums, rising_words, window_words, pair_sum, pair_sums_of_tiles, scan_tiles \
  }

namespace plain {
#include "cpu/streaming_kernels.hpp"
constexpr Kernels kKernels = ISOFOLD_KERNELS;
}  // namespace plain

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define ISOFOLD_X86_KERNELS

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
#endif
namespace avx2 {
#include "cpu/streaming_kernels.hpp"
constexpr Kernels kKernels = ISOFOLD_KERNELS;
}  // namespace avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,bmi,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,bmi,bmi2")
#endif
namespace avx512 {
#include "cpu/streaming_kernels.hpp"
constexpr Kernels kKernels = ISOFOLD_KERNELS;
}  // namespace avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

const Kernels& kernels() {
  static const Kernels& best = []() -> const Kernels& {
#if defined(ISOFOLD_X86_KERNELS)
    if (instruction_set() == InstructionSet::avx512) return avx512::kKernels;
    if (instruction_set() == InstructionSet::avx2) return avx2::kKernels;
#endif
    return plain::kKernels;
  }();
  return best;
}

}  // namespace

Statistics statistics(const double* values, std::int64_t count) {
  return kernels().statistics(values, count);
}
void multiply(const double* a, const double* b, std::int64_t count, double* out) {
  kernels().multiply(a, b, count, out);
}
void prefix_sums(const double* terms, std::int64_t count, double* out) {
  kernels().prefix_sums(terms, count, out);
}
void rising_words(const double* values, std::int64_t words, std::uint32_t* out) {
  kernels().rising_words(values, words, out);
}
void window_words(const double* values, std::int64_t words, std::uint32_t* out) {
  kernels().window_words(values, words, out);
}
DoubleDouble pair_sum(const double* values, const double* weights, std::int64_t count) {
  return kernels().pair_sum(values, weights, count);
}
void pair_sums_of_tiles(const double* values, const double* weights, std::int64_t tiles, DoubleDouble* out) {
  kernels().pair_sums_of_tiles(values, weights, tiles, out);
}
Statistics scan_tiles(const double* values, std::int64_t tiles, DoubleDouble* totals, double* depths) {
  return kernels().scan_tiles(values, tiles, totals, depths);
}

}  // namespace isofold::cpu
