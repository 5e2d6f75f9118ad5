// Sets the rounding and subnormal modes that the certificates assume, and gives the caller's back.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace isofold {

// Round to nearest, subnormals kept (FTZ and DAZ off), no traps: XLA's CPU client and
// torch.set_flush_denormal leave threads in another mode.
class FloatingMode {
 public:
#if defined(__x86_64__)
  FloatingMode() : saved_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~FloatingMode() { _mm_setcsr(saved_); }
#elif defined(__aarch64__)
  FloatingMode() {
    __asm__ volatile("mrs %0, fpcr" : "=r"(saved_));
    __asm__ volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
  }
  ~FloatingMode() { __asm__ volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
  FloatingMode() { std::feholdexcept(&saved_), std::fesetround(FE_TONEAREST); }
  ~FloatingMode() { std::fesetenv(&saved_); }
#endif
  FloatingMode(const FloatingMode&) = delete;
  FloatingMode& operator=(const FloatingMode&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kDefault = 0x1F80;  // all exceptions masked, nearest, no FTZ, no DAZ
  unsigned saved_;
#elif defined(__aarch64__)
  std::uint64_t saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace isofold
