// Short rows across lanes, once for each instruction set: lane_rows.cpp includes this file again and again.
// Hence no include guard.

#include "cpu/transpose_kernel.hpp"

inline constexpr bool kFixedLength = ISOFOLD_LANES > 128;  // rows of a length known when compiled

inline __attribute__((always_inline)) void round_to_float(Doubles& x) {
  x = __builtin_convertvector(__builtin_convertvector(x, Floats), Doubles);
}

inline __attribute__((always_inline)) void drop_signs(Doubles& x) {
  x = (Doubles)((Integers)x & (Integers{} + INT64_MAX));
}

// The mean of `count` elements whose sum is high + low, off by `error`, 0 where it is Exact, rounded, and
// where that is decided. Sums are below 2^900.
//
// q = RN(high RN(1 / count)) is off by less than 3 u |q|, so high - q count is exact (count is a small
// integer). With low added, the correction c is below 5 u |q| and off by 3 u of itself; adding it and the
// slack rounds once more: 64 u^2 |q| is three times that. Where nothing was lost on the way to c, q + c is
// the mean itself before it is rounded, which decides midpoints.
template <bool Narrow, bool Exact>
inline __attribute__((always_inline)) void round_means(const Doubles& high, const Doubles& low,
                                                       const Doubles& count, double error, Doubles& mean,
                                                       Integers& decided) {
  const Doubles inverse = 1.0 / count;
  const Doubles q = high * inverse;
  Doubles remainder;
  for (int lane = 0; lane < kLanes; ++lane) remainder[lane] = std::fma(-q[lane], count[lane], high[lane]);
  const Doubles rest = remainder + low;
  const Doubles low_part = rest - remainder;
  Doubles lost = (remainder - (rest - low_part)) + (low - low_part);
  const Doubles correction = rest * inverse;
  Doubles size = q;
  drop_signs(size);
  const Doubles slack = 64 * kUnitRoundoff * kUnitRoundoff * size + 2 * error * inverse;
  Doubles lower = q + (correction - slack);
  Doubles upper = q + (correction + slack);
  Doubles loss;  // 0 where nothing was lost on the way to c
  if constexpr (Narrow) {
    // Rounding to double first may land on a midpoint of floats: step outwards, by more than 2 u of either
    // end.
    const Doubles margin = 4 * kUnitRoundoff * (size + slack);
    lower -= margin;
    upper += margin;
    round_to_float(lower);
    round_to_float(upper);
    mean = q;
    round_to_float(mean);
    loss = rest;
  } else {
    Doubles residue;
    for (int lane = 0; lane < kLanes; ++lane)
      residue[lane] = std::fma(-correction[lane], count[lane], rest[lane]);
    mean = q + correction;
    loss = residue;
  }
  drop_signs(loss);
  drop_signs(lost);
  loss += lost;
  Doubles doubt = upper - lower;
  if constexpr (Exact) {
    doubt = loss == 0.0 ? Doubles{} : doubt;
    mean = loss == 0.0 ? mean : lower;
  } else {
    mean = lower;
  }
  doubt = size > 0x1p-900 ? doubt : Doubles{} + 1.0;
  if constexpr (Exact) {
    // A sum of nothing.
    Doubles sum = high;
    Doubles sum_low = low;
    drop_signs(sum);
    drop_signs(sum_low);
    sum += sum_low;
    doubt = sum == 0.0 ? Doubles{} : doubt;
    mean = sum == 0.0 ? Doubles{} : mean;
  }
  decided = doubt == 0.0;
}

// Point k is a vertex where all slopes from points before it are below all slopes to points after it. Slopes
// are scaled by 720720, a multiple of all their widths: with `exact` all of them are integers of less than 53
// bits in units. Else, A being a row's sum of |y| and u = 2^-53: a prefix sum is off by 16 u A, a difference
// of two by 33 u A, its product by 35 u A L, L = 720720, and the difference of two by 72 u A L. 2^-46 A L is
// 128 u A L.
//
// `Length` is that of the rows, for loops of fixed length, or 0 for any.
template <bool Narrow, bool Exact, int Length>
inline __attribute__((always_inline)) std::uint32_t fit_rows_of(const double* values, int any_length,
                                                                bool exact, double pair_error, double* fits,
                                                                std::uint32_t* starts) {
  const int length = Length != 0 ? Length : any_length;
  constexpr double kScale = 720720.0;
  constexpr double kShare[kLaneRow + 1] = {0,           kScale / 1,  kScale / 2,  kScale / 3,  kScale / 4,
                                           kScale / 5,  kScale / 6,  kScale / 7,  kScale / 8,  kScale / 9,
                                           kScale / 10, kScale / 11, kScale / 12, kScale / 13, kScale / 14,
                                           kScale / 15, kScale / 16};
  Doubles columns[kLaneRow];
  for (int k = 0; k < length; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) load_lanes(values + lane * length + k, columns[k + lane]);
    transpose(columns + k);
  }
  Doubles high[kLaneRow + 1];
  Doubles low[kLaneRow + 1];
  high[0] = low[0] = Doubles{};
  Doubles magnitude{};
  for (int k = 0; k < length; ++k) {
    const Doubles value = columns[k];
    const Doubles sum = high[k] + value;
    const Doubles value_part = sum - high[k];
    low[k + 1] = low[k] + ((high[k] - (sum - value_part)) + (value - value_part));
    high[k + 1] = sum;
    Doubles size = value;
    drop_signs(size);
    magnitude += size;
  }
  const Doubles slack = exact ? Doubles{} : magnitude * (0x1p-46 * kScale) + 0x1p-1000;
  const Integers undecidable = Integers{} - (exact ? 0 : 1);
  Integers unsure{};
  Integers vertex[kLaneRow];
  vertex[0] = Integers{} - 1;
  for (int k = 1; k < length; ++k) {
    const Doubles here = high[k];
    Doubles steepest = (here - high[k - 1]) * kShare[1];
    Doubles flattest = (high[k + 1] - here) * kShare[1];
    for (int j = 0; j + 1 < k; ++j) {
      const Doubles slope = (here - high[j]) * kShare[k - j];
      steepest = slope > steepest ? slope : steepest;
    }
    for (int j = k + 2; j <= length; ++j) {
      const Doubles slope = (high[j] - here) * kShare[j - k];
      flattest = slope < flattest ? slope : flattest;
    }
    const Doubles gap = flattest - steepest;
    vertex[k] = gap > slack;
    unsure |= undecidable & ~(vertex[k] | (gap < -slack));
  }

  Doubles means[kLaneRow];
  means[0] = Doubles{};  // compilers do not see that rows have elements
  Doubles next_high = high[length];
  Doubles next_low = low[length];
  Doubles next = Doubles{} + length;
  Integers bits{};
  for (int k = length - 1; k >= 0; --k) {
    const Doubles count = next - static_cast<double>(k);
    const Doubles sum = next_high - high[k];
    const Doubles here_part = sum - next_high;
    const Doubles rest = ((next_high - (sum - here_part)) - (high[k] + here_part)) + (next_low - low[k]);
    const Doubles total = sum + rest;
    const Doubles rest_part = total - sum;
    const Doubles total_low = (sum - (total - rest_part)) + (rest - rest_part);
    Doubles mean;
    Integers decided;
    round_means<Narrow, Exact>(total, total_low, count, pair_error, mean, decided);
    const Integers alone = count == 1.0;
    Doubles single = columns[k];
    if constexpr (Narrow) round_to_float(single);
    means[k] = alone != 0 ? single : mean;
    unsure |= vertex[k] & ~(decided | alone);
    next_high = vertex[k] != 0 ? high[k] : next_high;
    next_low = vertex[k] != 0 ? low[k] : next_low;
    next = vertex[k] != 0 ? Doubles{} + k : next;
    bits |= vertex[k] & (Integers{} + (std::int64_t{1} << k));
  }
  // Adding +0.0 makes every zero a positive one.
  Doubles mean = means[0];
  columns[0] = mean + 0.0;
  for (int k = 1; k < length; ++k) {
    mean = vertex[k] != 0 ? means[k] : mean;
    columns[k] = mean + 0.0;
  }
  for (int k = 0; k < length; k += kLanes) transpose(columns + k);
  // A row's spare places are overwritten by the next row.
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int k = 0; k < length; k += kLanes)
      __builtin_memcpy(fits + lane * length + k, &columns[k + lane], sizeof columns[0]);
  }
  std::uint32_t failed = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    starts[lane] = static_cast<std::uint32_t>(bits[lane]);
    failed |= unsure[lane] != 0 ? 1U << lane : 0U;
  }
  return failed;
}

template <bool Narrow, bool Exact>
inline std::uint32_t fit_lane_rows(const double* values, int length, bool exact, double pair_error,
                                   double* fits, std::uint32_t* starts) {
  // The length that is asked for most, where it pays.
  if constexpr (Exact && kFixedLength) {
    if (length == 16) return fit_rows_of<Narrow, Exact, 16>(values, length, exact, pair_error, fits, starts);
  }
  return fit_rows_of<Narrow, Exact, 0>(values, length, exact, pair_error, fits, starts);
}

// Means of eight blocks of 2 to kLaneRow elements, a lane each. A block's places behind its end are read and
// left out of its sum: with nothing added nothing is lost. What the additions lose is off by 136 u^2 M, M the
// magnitudes.
template <bool Narrow, bool Exact>
inline std::uint32_t find_lane_means(const double* values, const LaneBlocks& blocks, double pair_error,
                                     double* means) {
  Doubles counts;
  load_lanes(blocks.counts, counts);
  double longest = 0.0;
  for (const double count : blocks.counts) longest = count > longest ? count : longest;
  Doubles columns[kLaneRow];
  for (int k = 0; k < longest; k += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) load_lanes(values + blocks.starts[lane] + k, columns[k + lane]);
    transpose(columns + k);
  }
  Doubles high{};
  Doubles low{};
  for (int k = 0; k < longest; ++k) {
    const Doubles value = counts > static_cast<double>(k) ? columns[k] : Doubles{};
    const Doubles sum = high + value;
    const Doubles value_part = sum - high;
    low += (high - (sum - value_part)) + (value - value_part);
    high = sum;
  }
  const Doubles total = high + low;
  const Doubles low_part = total - high;
  const Doubles total_low = (high - (total - low_part)) + (low - low_part);
  Doubles mean;
  Integers decided;
  round_means<Narrow, Exact>(total, total_low, counts, pair_error, mean, decided);
  __builtin_memcpy(means, &mean, sizeof mean);
  std::uint32_t undecided = 0;
  for (int lane = 0; lane < kLanes; ++lane) undecided |= decided[lane] == 0 ? 1U << lane : 0U;
  return undecided;
}

constexpr LaneKernels kKernels{{{fit_lane_rows<false, false>, fit_lane_rows<false, true>},
                                {fit_lane_rows<true, false>, fit_lane_rows<true, true>}},
                               {{find_lane_means<false, false>, find_lane_means<false, true>},
                                {find_lane_means<true, false>, find_lane_means<true, true>}}};
