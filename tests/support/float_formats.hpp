// The four element types as bit patterns: decoded exactly, encoded by one rounding. Independent of the
// library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "isofold/arrays.hpp"

namespace isofold_test {

using isofold::DataType;

__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

// A binary floating-point format: normal numbers are m 2^(e - precision + 1) with 2^(precision - 1) <= m <
// 2^precision and min_exponent <= e <= max_exponent.
struct Format {
  int precision;
  int min_exponent;
  int max_exponent;
  int bits;
};

[[nodiscard]] const Format& format_of(DataType type);
[[nodiscard]] std::size_t size_of(DataType type);
[[nodiscard]] const char* name_of(DataType type);

// x = significand 2^exponent with an odd significand; zero is {0, 0}. x must be finite.
struct Parts {
  std::int64_t significand;
  int exponent;
};
[[nodiscard]] Parts parts_of(double x);

[[nodiscard]] int bit_length(UInt128 x);

// The bits of (-1)^negative (magnitude + s) 2^exponent rounded to nearest, ties to even, where 0 < s < 1 if
// `sticky` and s = 0 otherwise. A sticky magnitude must have more than precision + 1 bits. A zero result is
// +0.0.
[[nodiscard]] std::uint64_t round_to_format(const Format& format, bool negative, UInt128 magnitude,
                                            int exponent, bool sticky);

[[nodiscard]] std::uint64_t encode(DataType type, double x);  // rounded once; -0.0 gives +0.0
[[nodiscard]] std::uint64_t spell(DataType type, double x);   // x is one of the type's numbers; -0.0 stays
[[nodiscard]] double decode(DataType type, std::uint64_t bits);
[[nodiscard]] std::uint64_t canonical_nan(DataType type);
[[nodiscard]] double largest_finite(DataType type);
[[nodiscard]] double smallest_positive(DataType type);

// The float `steps` places further up among the finite floats of the type (both zeros are one place);
// saturates.
[[nodiscard]] double step(DataType type, double x, std::int64_t steps);

[[nodiscard]] std::uint64_t load_bits(const void* data, DataType type, std::int64_t index);
void store_bits(void* data, DataType type, std::int64_t index, std::uint64_t bits);

// As C and Python read it back: 0x1.8p-3.
[[nodiscard]] std::string hex(double x);

}  // namespace isofold_test
