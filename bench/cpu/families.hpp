// The kinds of rows that are timed. bench/cpu/families.py draws the same ones for Python.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace isofold_bench {

enum class Family : std::uint8_t {
  noise,              // a ramp from 0 to 3 and normal noise of variance 1: a few long blocks
  weighted_noise,     // the same, weights between 1/2 and 3/2
  binary,             // labels whose rate climbs from 0.1 to 0.6
  increasing,         // every element a block
  decreasing,         // one block
  constant,           // one block of 0.1
  cliff,              // increasing, then one drop at the end that takes everything with it
  mirrored_cliff,     // one peak at the start, then increasing
  sawtooth_9,         // teeth of 9 on a ramp from 0 to 1: short blocks
  sawtooth_5003,      // teeth of 5,003: bridges reach across chunks
  blocks_of_ten,      // short blocks
  ninths,             // (i % 9) * 0.1: exact ties that doubles cannot decide
  one_decimal_noise,  // noise rounded to one decimal
  rates,              // k / m with weight m: values and weights as counts give them
};

struct FamilyName {
  Family family;
  std::string_view name;
};
inline constexpr std::array kFamilies = {
    FamilyName{Family::noise, "noise"},
    FamilyName{Family::weighted_noise, "weighted_noise"},
    FamilyName{Family::binary, "binary"},
    FamilyName{Family::increasing, "increasing"},
    FamilyName{Family::decreasing, "decreasing"},
    FamilyName{Family::constant, "constant"},
    FamilyName{Family::cliff, "cliff"},
    FamilyName{Family::mirrored_cliff, "mirrored_cliff"},
    FamilyName{Family::sawtooth_9, "sawtooth_9"},
    FamilyName{Family::sawtooth_5003, "sawtooth_5003"},
    FamilyName{Family::blocks_of_ten, "blocks_of_ten"},
    FamilyName{Family::ninths, "ninths"},
    FamilyName{Family::one_decimal_noise, "one_decimal_noise"},
    FamilyName{Family::rates, "rates"},
};

template <class T>
struct Batch {
  std::vector<T> values;
  std::vector<T> weights;  // empty: none
};

// `rows` rows of `length` elements of one family, one after another, from a fixed seed. T: float, double.
template <class T>
[[nodiscard]] Batch<T> make_batch(Family family, std::int64_t rows, std::int64_t length);

}  // namespace isofold_bench
