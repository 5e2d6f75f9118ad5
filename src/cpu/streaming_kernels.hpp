// The streaming passes, once for each instruction set: streaming.cpp includes this file again and again,
// under another target and in another namespace each time. Hence no include guard.

#include "cpu/transpose_kernel.hpp"

inline Statistics statistics(const double* values, std::int64_t count) {
  const Integers magnitude_bits = Integers{} + INT64_MAX;
  Doubles magnitude{};
  Doubles poison{};
  Doubles smallest = Doubles{} + kInfinity;
  Doubles lowest = smallest;
  Doubles highest = -smallest;
  Integers bits{};
  const auto see = [&](const Doubles& value) __attribute__((always_inline)) {
    const Doubles size = (Doubles)((Integers)value & magnitude_bits);
    magnitude += size;
    poison += value * 0.0;
    const Doubles nonzero = size == 0.0 ? Doubles{} + kInfinity : size;
    smallest = nonzero < smallest ? nonzero : smallest;
    lowest = value < lowest ? value : lowest;
    highest = value > highest ? value : highest;
    bits |= (Integers)value;
  };
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Doubles value;
    load_lanes(values + i, value);
    see(value);
  }
  if (i < count) {
    // The last value again in the spare lanes, which is to be counted once.
    Doubles value = Doubles{} + values[count - 1];
    for (int lane = 0; i + lane < count; ++lane) value[lane] = values[i + lane];
    const Doubles before = magnitude;
    see(value);
    for (int lane = static_cast<int>(count - i); lane < kLanes; ++lane) magnitude[lane] = before[lane];
  }
  Statistics result;
  for (int lane = 0; lane < kLanes; ++lane) {
    result.magnitude += magnitude[lane];
    result.finite = result.finite && poison[lane] == 0.0;
    result.lowest = lowest[lane] < result.lowest ? lowest[lane] : result.lowest;
    result.highest = highest[lane] > result.highest ? highest[lane] : result.highest;
    result.unit.merge({smallest[lane], static_cast<std::uint64_t>(bits[lane])});
  }
  return result;
}

inline void multiply(const double* a, const double* b, std::int64_t count, double* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = a[i] * b[i];
}

// Eight stretches side by side hide the latency of the additions; a second pass adds where each stretch
// begins.
inline void prefix_sums(const double* terms, std::int64_t count, double* out) {
  const std::int64_t stretch = count / kLanes;
  double sum[kLanes] = {};
  for (std::int64_t i = 0; i < stretch; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      out[lane * stretch + i] = sum[lane];
      sum[lane] += terms[lane * stretch + i];
    }
  }
  double start = sum[0];
  for (int lane = 1; lane < kLanes; ++lane) {
    for (std::int64_t i = 0; i < stretch; ++i) out[lane * stretch + i] += start;
    start += sum[lane];
  }
  for (std::int64_t i = kLanes * stretch; i < count; ++i) {
    out[i] = start;
    start += terms[i];
  }
  out[count] = start;
}

// The 32 answers of `test(i)`, which gives eight of them, for the elements i .. i + 7.
template <class Test>
inline __attribute__((always_inline)) std::uint32_t pack_tile(Test&& test) {
  Integers bit = {1, 2, 4, 8, 16, 32, 64, 128};
  Integers bits{};
  for (int i = 0; i < 32; i += kLanes) {
    Integers answers;
    test(i, answers);
    bits |= answers & bit;
    bit <<= kLanes;
  }
  std::int64_t word = 0;
  for (int lane = 0; lane < kLanes; ++lane) word |= bits[lane];
  return static_cast<std::uint32_t>(word);
}

inline void rising_words(const double* values, std::int64_t words, std::uint32_t* out) {
  for (std::int64_t w = 0; w < words; ++w) {
    const double* tile = values + 32 * w;
    out[w] = pack_tile([&](int i, Integers& answers) __attribute__((always_inline)) {
      Doubles left;
      Doubles right;
      load_lanes(tile + i - 1, left);
      load_lanes(tile + i, right);
      answers = left < right;
    });
  }
}

// Sums of two are rounded monotonically: rounded sums in falling order prove real ones in falling order, and
// 2 y is exact but for overflow, where the infinity keeps its order, too.
inline void window_words(const double* values, std::int64_t words, std::uint32_t* out) {
  for (std::int64_t w = 0; w < words; ++w) {
    if (out[w] == 0 || out[w] == ~0U) continue;
    const double* tile = values + 32 * w;
    out[w] &= pack_tile([&](int i, Integers& answers) __attribute__((always_inline)) {
      Doubles y[4];
      for (int k = 0; k < 4; ++k) load_lanes(tile + i + k - 2, y[k]);
      const Doubles left = y[0] + y[1];
      const Doubles right = y[2] + y[3];
      answers = (left <= right) & (2 * y[1] <= right) & (left <= 2 * y[2]);
    });
  }
}

// Compensated sums: `high` and, apart, what its additions lose.
inline __attribute__((always_inline)) void add_lanes(Doubles& high, Doubles& low, const Doubles& term,
                                                     const Doubles& lost) {
  const Doubles sum = high + term;
  const Doubles term_part = sum - high;
  const Doubles high_part = sum - term_part;
  low += ((high - high_part) + (term - term_part)) + lost;
  high = sum;
}

inline void join(double* high, double* low, double other_high, double other_low) {
  const TwoTerms sum = two_sum(*high, other_high);
  *high = sum.high;
  *low += other_low + sum.low;
}

inline __attribute__((always_inline)) DoubleDouble sum_lanes(const double* values, const double* weights,
                                                             std::int64_t count) {
  double high[kLanes] = {};
  double low[kLanes] = {};
  std::int64_t i = 0;
  if (count >= kLanes) {
    Doubles highs{};
    Doubles lows{};
    for (; i + kLanes <= count; i += kLanes) {
      Doubles value;
      load_lanes(values + i, value);
      Doubles lost{};
      if (weights != nullptr) {
        Doubles weight;
        load_lanes(weights + i, weight);
        const Doubles product = value * weight;
        for (int lane = 0; lane < kLanes; ++lane)
          lost[lane] = std::fma(value[lane], weight[lane], -product[lane]);
        value = product;
      }
      add_lanes(highs, lows, value, lost);
    }
    __builtin_memcpy(high, &highs, sizeof high);
    __builtin_memcpy(low, &lows, sizeof low);
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    const TwoTerms term = weights == nullptr ? TwoTerms{values[i], 0.0} : two_product(values[i], weights[i]);
    join(&high[lane], &low[lane], term.high, term.low);
  }
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane)
      join(&high[lane], &low[lane], high[lane + half], low[lane + half]);
  }
  const TwoTerms normalized = two_sum(high[0], low[0]);
  return {normalized.high, normalized.low};
}

inline DoubleDouble pair_sum(const double* values, const double* weights, std::int64_t count) {
  return weights == nullptr ? sum_lanes(values, nullptr, count) : sum_lanes(values, weights, count);
}

inline void pair_sums_of_tiles(const double* values, const double* weights, std::int64_t tiles,
                               DoubleDouble* out) {
  for (std::int64_t t = 0; t < tiles; ++t) {
    out[t] = weights == nullptr ? sum_lanes(values + 32 * t, nullptr, 32)
                                : sum_lanes(values + 32 * t, weights + 32 * t, 32);
  }
}

// Eight tiles at a time, a lane each; the last eight once more, where they are not a whole group.
//
// A tile's sum: 32 terms in a row, each loses at most u M (M the tile's magnitudes, u = 2^-53), the k-th
// addition of the losses u k u M: 528 u^2 M in all, a little over half of the 64 operations that
// RowHull::place_chunks grants the inside of a tile.
//
// A tile's depth: with c a thirty-second of `high`, d_k = y_k - c and D = sum |d_k|, the running sum of the
// d_k is off by u D for the d_k and by 31 u D for its additions. `high` itself, a plain running sum, is off
// by 31 u M from the tile's sum, M <= D + |high|, and by 2^-1069 where c underflows; the bound's own rounding
// is below 2 u D: 65 u D + 31 u |high| in all, where 2^-46 (D + |high|) is 128 u of both.
inline Statistics scan_tiles(const double* values, std::int64_t tiles, DoubleDouble* totals, double* depths) {
  const Integers magnitude_bits = Integers{} + INT64_MAX;
  const Doubles infinite = Doubles{} + kInfinity;
  Doubles smallest = infinite;
  Doubles lowest = infinite;
  Doubles highest = -infinite;
  Integers bits{};
  Statistics result;
  for (std::int64_t next = 0; next < tiles; next += kLanes) {
    const std::int64_t first = next + kLanes <= tiles ? next : tiles - kLanes;
    const double* group = values + 32 * first;
    Doubles columns[32];
    Doubles high{};
    Doubles low{};
    Doubles magnitude{};
    for (int k = 0; k < 32; k += kLanes) {
      for (int lane = 0; lane < kLanes; ++lane) load_lanes(group + 32 * lane + k, columns[k + lane]);
      transpose(columns + k);
      for (int i = k; i < k + kLanes; ++i) {
        const Doubles value = columns[i];
        const Doubles size = (Doubles)((Integers)value & magnitude_bits);
        magnitude += size;
        const Doubles nonzero = size == 0.0 ? infinite : size;
        smallest = nonzero < smallest ? nonzero : smallest;
        lowest = value < lowest ? value : lowest;
        highest = value > highest ? value : highest;
        bits |= (Integers)value;
        const Doubles sum = high + value;
        const Doubles term_part = sum - high;
        const Doubles high_part = sum - term_part;
        low += (high - high_part) + (value - term_part);
        high = sum;
      }
    }
    const Doubles center = high * 0x1p-5;
    Doubles height{};
    Doubles deepest{};
    Doubles spread{};
    for (const Doubles& value : columns) {
      const Doubles d = value - center;
      height += d;
      deepest = height < deepest ? height : deepest;
      spread += (Doubles)((Integers)d & magnitude_bits);
    }
    const Doubles size = (Doubles)((Integers)high & magnitude_bits);
    const Doubles depth = (spread + size) * 0x1p-46 + 0x1p-1060 - deepest;
    __builtin_memcpy(depths + first, &depth, sizeof depth);
    for (int lane = 0; lane < kLanes; ++lane) {
      const TwoTerms normalized = two_sum(high[lane], low[lane]);
      totals[first + lane] = {normalized.high, normalized.low};
      if (first + lane >= next) result.magnitude += magnitude[lane];
    }
  }
  // A sum of magnitudes is infinite or NaN where a value is.
  result.finite = result.magnitude < kInfinity;
  for (int lane = 0; lane < kLanes; ++lane) {
    result.lowest = lowest[lane] < result.lowest ? lowest[lane] : result.lowest;
    result.highest = highest[lane] > result.highest ? highest[lane] : result.highest;
    result.unit.merge({smallest[lane], static_cast<std::uint64_t>(bits[lane])});
  }
  return result;
}

constexpr Kernels kKernels{statistics,   multiply, prefix_sums,        rising_words,
                           window_words, pair_sum, pair_sums_of_tiles, scan_tiles};
