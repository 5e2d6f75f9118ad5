// From bits of a vertex mask to the bytes that callers get.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

namespace isofold::cpu {

// Writes eight bytes, ones and zeros, for eight bits, the lowest first: a copy of all bits for each byte, of
// which it keeps its own; adding 127 carries that to the top.
inline void write_flag_bytes(std::uint32_t bits, std::uint8_t* out) {
  constexpr std::uint64_t kOnes = 0x0101010101010101;
  constexpr std::uint64_t kOwn =
      std::endian::native == std::endian::little ? 0x8040201008040201 : 0x0102040810204080;
  const std::uint64_t kept = (std::uint64_t{bits & 0xFF} * kOnes) & kOwn;
  const std::uint64_t bytes = ((kept + 0x7F * kOnes) >> 7) & kOnes;
  std::memcpy(out, &bytes, sizeof bytes);
}

}  // namespace isofold::cpu
