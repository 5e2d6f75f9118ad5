#include "cpu/dot_streams.hpp"

#include <cmath>

#include "cpu/instruction_set.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>
#endif

namespace isofold::cpu {
namespace {

struct DotKernels {
  CompensatedSum (*sum_floats)(const float*, std::int64_t);
  CompensatedSum (*sum_doubles)(const double*, std::int64_t);
  CompensatedSum (*dot_floats)(const float*, const float*, std::int64_t);
  CompensatedSum (*dot_doubles)(const double*, const double*, std::int64_t);
};

#define ISOFOLD_DOT_KERNELS \
  DotKernels { sum_floats, sum_doubles, dot_floats, dot_doubles }

#define ISOFOLD_LANES 128
namespace plain {
#include "cpu/dot_kernels.hpp"
constexpr DotKernels kKernels = ISOFOLD_DOT_KERNELS;
}  // namespace plain
#undef ISOFOLD_LANES

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define ISOFOLD_X86_KERNELS

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma,bmi,bmi2"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma,bmi,bmi2")
#endif
#define ISOFOLD_LANES 256
namespace avx2 {
#include "cpu/dot_kernels.hpp"
constexpr DotKernels kKernels = ISOFOLD_DOT_KERNELS;
}  // namespace avx2
#undef ISOFOLD_LANES
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,fma,bmi,bmi2"))), \
                             apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,fma,bmi,bmi2")
#endif
#define ISOFOLD_LANES 512
namespace avx512 {
#include "cpu/dot_kernels.hpp"
constexpr DotKernels kKernels = ISOFOLD_DOT_KERNELS;
}  // namespace avx512
#undef ISOFOLD_LANES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

const DotKernels& kernels() {
  static const DotKernels& best = []() -> const DotKernels& {
#if defined(ISOFOLD_X86_KERNELS)
    if (instruction_set() == InstructionSet::avx512) return avx512::kKernels;
    if (instruction_set() == InstructionSet::avx2) return avx2::kKernels;
#endif
    return plain::kKernels;
  }();
  return best;
}

// Few elements are sooner done in few lanes, which have to be added up.
const DotKernels& kernels_for(std::int64_t count) { return count < 48 ? plain::kKernels : kernels(); }

}  // namespace

CompensatedSum sum_stream(const float* a, std::int64_t count) {
  return kernels_for(count).sum_floats(a, count);
}
CompensatedSum sum_stream(const double* a, std::int64_t count) {
  return kernels_for(count).sum_doubles(a, count);
}
CompensatedSum dot_stream(const float* a, const float* b, std::int64_t count) {
  return kernels_for(count).dot_floats(a, b, count);
}
CompensatedSum dot_stream(const double* a, const double* b, std::int64_t count) {
  return kernels_for(count).dot_doubles(a, b, count);
}

bool products_may_underflow(const double* a, const double* b, std::int64_t count) {
  bool found = false;
  for (std::int64_t i = 0; i < count; ++i) {
    found |= (std::fabs(a[i] * b[i]) < 0x1p-960) & (a[i] != 0) & (b[i] != 0);
  }
  return found;
}

}  // namespace isofold::cpu
