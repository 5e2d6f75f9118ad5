// A small seeded generator (SplitMix64): the same numbers everywhere, and as many independent streams as
// wanted.
#pragma once

#include <cmath>
#include <cstdint>

namespace isofold_test {

class Random {
 public:
  explicit Random(std::uint64_t seed, std::uint64_t stream = 0) : state_(mix(mix(seed) ^ mix(~stream))) {}

  std::uint64_t bits() {
    state_ += kStep;
    return mix(state_);
  }
  // 0 .. count - 1; the bias of the multiplication is of no concern here.
  std::int64_t below(std::int64_t count) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::int64_t>((static_cast<Wide>(bits()) * static_cast<std::uint64_t>(count)) >> 64);
  }
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) { return unit() < probability; }
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  double sign() { return (bits() & 1) != 0 ? 1.0 : -1.0; }
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - unit()));
    return radius * std::cos(6.283185307179586 * unit());
  }

 private:
  static constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15;

  static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
  }

  std::uint64_t state_;
};

}  // namespace isofold_test
