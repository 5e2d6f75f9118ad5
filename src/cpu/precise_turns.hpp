// The turns of one chunk that plain doubles left undecided. Ties are common in real data, so this path must
// be fast: prefix sums in 128-bit integers, in units of the lowest set bit of the data, make a turn two
// multiplications. Where the exponents spread too far for that, prefix sums in pairs of doubles decide what
// is not a tie.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpu/survey.hpp"
#include "exact/exact_number.hpp"
#include "geometry/point.hpp"

namespace isofold::cpu {

class PreciseTurns {
 public:
  // The chunk in hand; weights may be null. Nothing is computed until a turn is asked.
  void reset(const double* values, const double* weights, std::int64_t count, const Survey& survey);

  // Whether point b lies strictly below the chord from a to d; nothing where only long accumulators can tell.
  [[nodiscard]] std::optional<bool> bends_up(std::int64_t a, std::int64_t b, std::int64_t d);

 private:
  enum class State { unbuilt, integers, pairs };

  void build();
  [[nodiscard]] bool fits_integers() const;
  void build_integers();
  void build_pairs();
  [[nodiscard]] Int128 weight_units(std::int64_t from, std::int64_t to) const;
  [[nodiscard]] Point point(std::int64_t index) const;

  const double* values_ = nullptr;
  const double* weights_ = nullptr;
  std::int64_t count_ = 0;
  const Survey* survey_ = nullptr;
  State state_ = State::unbuilt;
  std::vector<Int128> total_integers_;
  std::vector<std::int64_t> weight_integers_;
  std::vector<DoubleDouble> total_pairs_;
  std::vector<DoubleDouble> weight_pairs_;
};

}  // namespace isofold::cpu
