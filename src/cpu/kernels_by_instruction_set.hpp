// Compiles the file that ISOFOLD_KERNELS names once for each instruction set, and picks, once, the best build
// that this processor runs. The file defines the functions and, last, a constant kKernels that holds them;
// ISOFOLD_LANES tells it the bits of a register. All builds compute the same bits. To be included where the
// functions go, so without a guard; what the file needs is included before.

#define ISOFOLD_LANES 128
namespace plain {
#include ISOFOLD_KERNELS
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
#include ISOFOLD_KERNELS
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
#include ISOFOLD_KERNELS
}  // namespace avx512
#undef ISOFOLD_LANES
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif
#undef ISOFOLD_KERNELS

const auto& kernels() {
  static const auto& best = []() -> const auto& {
#if defined(ISOFOLD_X86_KERNELS)
    if (instruction_set() == InstructionSet::avx512) return avx512::kKernels;
    if (instruction_set() == InstructionSet::avx2) return avx2::kKernels;
#endif
    return plain::kKernels;
  }();
  return best;
}
