#include "cpu/instruction_set.hpp"

#include <cstdlib>
#include <string_view>

namespace isofold::cpu {

InstructionSet instruction_set() {
  static const InstructionSet best = [] {
#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
    const char* wanted = std::getenv("ISOFOLD_INSTRUCTIONS");
    const std::string_view limit = wanted != nullptr ? wanted : "";
    if (limit == "plain") return InstructionSet::plain;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("fma") && limit != "avx2") {
      return InstructionSet::avx512;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return InstructionSet::avx2;
#endif
    return InstructionSet::plain;
  }();
  return best;
}

}  // namespace isofold::cpu
