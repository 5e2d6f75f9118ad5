// Which build of the vector code this processor runs, chosen once.
#pragma once

#include <cstdint>

namespace isofold::cpu {

enum class InstructionSet : std::uint8_t { plain, avx2, avx512 };

// ISOFOLD_INSTRUCTIONS=plain or avx2 in the environment holds back wider registers, for tests and
// comparisons.
[[nodiscard]] InstructionSet instruction_set();

}  // namespace isofold::cpu
