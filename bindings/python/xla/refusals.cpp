#include "refusals.hpp"

#include <algorithm>
#include <cstring>

namespace isofold::python {
namespace {

// What is asked of and written to elements, as bits.
struct Bits {
  std::int64_t width;  // bytes
  std::uint64_t exponent;
  std::uint64_t sign;
  std::uint64_t one;
  std::uint64_t nan;
};

Bits bits_of(DataType type) {
  switch (type) {
    case DataType::float16:
      return {2, 0x7c00, 0x8000, 0x3c00, 0x7e00};
    case DataType::bfloat16:
      return {2, 0x7f80, 0x8000, 0x3f80, 0x7fc0};
    case DataType::float32:
      return {4, 0x7f800000, 0x80000000, 0x3f800000, 0x7fc00000};
    case DataType::float64:
    case DataType::none:
      break;
  }
  return {8, 0x7ff0000000000000, 0x8000000000000000, 0x3ff0000000000000, 0x7ff8000000000000};
}

// Little-endian, as every platform that XLA runs on.
std::uint64_t element(const void* data, const Bits& bits, std::int64_t at) {
  std::uint64_t found = 0;
  std::memcpy(&found, static_cast<const unsigned char*>(data) + at * bits.width,
              static_cast<std::size_t>(bits.width));
  return found;
}

void fill(void* data, const Bits& bits, std::int64_t begin, std::int64_t end, std::uint64_t value) {
  for (std::int64_t i = begin; i < end; ++i) {
    std::memcpy(static_cast<unsigned char*>(data) + i * bits.width, &value,
                static_cast<std::size_t>(bits.width));
  }
}

bool fits(const IsotonicProblem& problem, std::int64_t begin, std::int64_t end) {
  const Bits value = bits_of(problem.values.type);
  const Bits weight = bits_of(problem.weights.type);
  const auto finite = [](std::uint64_t x, const Bits& bits) { return (x & bits.exponent) != bits.exponent; };
  for (std::int64_t i = begin; i < end; ++i) {
    if (!finite(element(problem.values.data, value, i), value)) return false;
    if (!problem.weights.present()) continue;
    const std::uint64_t w = element(problem.weights.data, weight, i);
    if (!finite(w, weight) || w == 0 || (w & weight.sign) != 0) return false;
  }
  return true;
}

// A copy of an array with `value` in some pieces.
ConstArray mended(ConstArray array, std::int64_t total,
                  const std::vector<std::pair<std::int64_t, std::int64_t>>& pieces,
                  std::vector<unsigned char>& copy, bool ones) {
  const Bits bits = bits_of(array.type);
  copy.resize(static_cast<std::size_t>(total * bits.width));
  std::memcpy(copy.data(), array.data, copy.size());
  for (const auto& [begin, end] : pieces) fill(copy.data(), bits, begin, end, ones ? bits.one : 0);
  return {copy.data(), array.type};
}

}  // namespace

Refusals Refusals::of_rows(const IsotonicProblem& problem) {
  Refusals found;
  for (std::int64_t r = 0; r < problem.rows.count; ++r) {
    const std::int64_t begin = problem.rows.begin(r);
    const std::int64_t end = problem.rows.end(r);
    if (!fits(problem, begin, end)) found.pieces_.emplace_back(begin, end);
  }
  return found;
}

Refusals Refusals::of_blocks(const IsotonicProblem& problem, const std::uint8_t* block_starts) {
  Refusals found;
  const std::int64_t total = problem.rows.total();
  for (std::int64_t begin = 0; begin < total;) {
    const std::uint8_t* next =
        std::find_if(block_starts + begin + 1, block_starts + total, [](auto flag) { return flag != 0; });
    const std::int64_t end = next - block_starts;
    if (!fits(problem, begin, end)) found.pieces_.emplace_back(begin, end);
    begin = end;
  }
  return found;
}

IsotonicProblem Refusals::harmless(const IsotonicProblem& problem) {
  IsotonicProblem result = problem;
  const std::int64_t total = problem.rows.total();
  result.values = mended(problem.values, total, pieces_, values_, false);
  if (problem.weights.present()) result.weights = mended(problem.weights, total, pieces_, weights_, true);
  return result;
}

void Refusals::refuse(MutableArray array) const {
  if (!array.present()) return;
  const Bits bits = bits_of(array.type);
  for (const auto& [begin, end] : pieces_) fill(array.data, bits, begin, end, bits.nan);
}

}  // namespace isofold::python
