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

#define ISOFOLD_KERNELS "cpu/dot_kernels.hpp"
#include "cpu/kernels_by_instruction_set.hpp"

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
