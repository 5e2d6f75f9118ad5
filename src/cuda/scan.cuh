// The first look at a row: it streams past once, 1,024 elements a warp, and leaves for every tile its sums
// and how far the tile's diagram can dip below the tile's own chord. That is all that the filter in
// sparse_hull.cuh needs to throw most tiles away unread.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/chunk.cuh"
#include "cuda/staging.cuh"

namespace isofold::cuda {

inline constexpr int kScanTiles = kChunk<kBlock> / kTile;  // tiles of the longest chunk that a warp takes
inline constexpr int kGroupTiles = kGroup / kTile;
inline constexpr int kGroups = kScanTiles / kGroupTiles;

// Whether tiles are summed in plain doubles: they hold the sum of 32 floats exactly unless exponents spread
// very far, and such chunks are left to a block. Other types are summed as pairs.
template <class E>
inline constexpr bool kPlainTiles = !E::kWeighted && sizeof(typename E::Value) == 4;

// What is known of the numbers of a group, or of a chunk of several.
struct ScanFacts {
  double magnitude = 0.0;  // sum of |w y|, a little more rather than less
  double weight_magnitude = 0.0;
  int unit = UnitTracker::kNone;
  int weight_unit = UnitTracker::kNone;
  // All values finite, all weights finite and positive, and not so large that sums overflow.
  bool allowed = true;
  bool rough = false;  // the sums of tiles are not exact, nor known well enough
  int rising = 0;      // groups whose tiles' means nearly all rise
  int sorted = 0;      // groups whose values never fall
};

__device__ inline ScanFacts operator+(const ScanFacts& a, const ScanFacts& b) {
  return {a.magnitude + b.magnitude, a.weight_magnitude + b.weight_magnitude,
          min(a.unit, b.unit),       min(a.weight_unit, b.weight_unit),
          a.allowed && b.allowed,    a.rough || b.rough,
          a.rising + b.rising,       a.sorted + b.sorted};
}

// Of up to 32 groups, one a lane.
__device__ inline ScanFacts facts_of_groups(const ScanFacts* groups, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  ScanFacts facts;
  if (lane < count) facts = groups[lane];
  const Team<32> team{nullptr};
  constexpr unsigned kAll = 0xffffffffU;
  return {team.reduce_sum(facts.magnitude),
          team.reduce_sum(facts.weight_magnitude),
          warp_min(facts.unit),
          warp_min(facts.weight_unit),
          __all_sync(kAll, facts.allowed) != 0,
          __any_sync(kAll, facts.rough) != 0,
          warp_sum(facts.rising),
          warp_sum(facts.sorted)};
}

template <class E>
struct TileScan {
  DoubleDouble total;
  DoubleDouble weight;
  float depth;
  double magnitude;
  double weight_magnitude;
  bool positive;
  bool sorted;   // the values never fall
  double first;  // value
  double last;
};

// The unit of floats, in three operations an element (BitTracker looks for infinities too).
struct FloatUnit {
  std::uint32_t smallest = ~0U;  // of 2 |bits| - 1, which makes zero the largest
  std::uint32_t mantissas = 0;
  __device__ void see(float value) {
    if constexpr (!kCertified) return;
    const std::uint32_t bits = __float_as_uint(value);
    smallest = min(smallest, 2 * bits - 1);
    mantissas |= bits;
  }
  __device__ int unit() const {
    if (smallest == ~0U) return UnitTracker::kNone;
    const int field = max(static_cast<int>((smallest + 1) >> 24), 1);
    return field - 150 + trailing_zeros((mantissas & 0x7fffffU) | 0x800000U);
  }
  __device__ int unit_of_warp() const {
    if constexpr (!kCertified) return UnitTracker::kNone;
    return FloatUnit{warp_min(smallest), warp_or(mantissas)}.unit();
  }
};

// Sums and depth of a tile of floats. With c near the mean, d_k = y_k - c and D = sum |d_k|, u = 2^-24: every
// d_k is off by u |d_k| and 31 additions by u times at most D each, in all 33 u D (1 + 2^-18); c is off by
// u |c| (the sum in doubles adds nothing to speak of), which 32 times over is 32 u |c|. 2^-18 (D + |c|) is
// more than both, and 2^-140 more than what underflows.
template <class E>
__device__ TileScan<E> scan_float_tile(const float (&values)[kTile], double sign, FloatUnit& unit) {
  double even = 0;
  double odd = 0;
#pragma unroll
  for (int k = 0; k < kTile; k += 2) {
    even += static_cast<double>(values[k]);
    odd += static_cast<double>(values[k + 1]);
  }
  const double total = sign * (even + odd);
  const auto center = static_cast<float>(total * (1.0 / kTile));
  const auto direction = static_cast<float>(sign);
  float height = 0;
  float lowest = 0;
  float spread = 0;
#pragma unroll
  for (int k = 0; k < kTile; ++k) {
    const float d = __fmaf_rn(values[k], direction, -center);
    height += d;
    lowest = fminf(lowest, height);
    spread += fabsf(d);
    unit.see(values[k]);
  }
  const float size = fabsf(center);
  return {{total, 0.0},
          {},
          (spread + size) * 0x1p-18F - lowest + 0x1p-140F,
          static_cast<double>(spread) * (1 + 0x1p-16) + kTile * static_cast<double>(size),
          0.0,
          true,
          true,
          sign * static_cast<double>(values[0]),
          sign * static_cast<double>(values[kTile - 1])};
}

// The elements of a group in shared memory.
template <bool Weighted, class V, class W>
struct Window {
  alignas(16) V values[kGroup];
};
template <class V, class W>
struct Window<true, V, W> {
  alignas(16) V values[kGroup];
  alignas(16) W weights[kGroup];
};
template <class E>
using Stage = Window<E::kWeighted, typename E::Value, typename E::Weight>;

template <class E>
using TrackedWeight = std::conditional_t<E::kWeighted, typename E::Weight, float>;

// The same for the other types, in pairs. Heights run in floats, over terms that are formed in doubles: each
// is off by a little more than u = 2^-24 of itself and the sum of 32 by 32 u of their magnitudes more, below
// 2^-18 of them. The mean is off by less than 2^-50 of itself, W times that in height.
template <class E>
__device__ TileScan<E> scan_pair_tile(const Stage<E>& stage, int count, double sign,
                                      BitTracker<typename E::Value>& bits,
                                      BitTracker<TrackedWeight<E>>& weight_bits) {
  const int row = static_cast<int>(threadIdx.x) % 32;
  TileScan<E> tile{};
  tile.positive = true;
  tile.sorted = true;
  tile.last = -INFINITY;
#pragma unroll 2
  for (int k = 0; k < kTile; k += 4) {
    typename E::Value values[4];
    read_four(stage.values, row, k, values);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const double value = sign * static_cast<double>(values[j]);
      tile.sorted = tile.sorted && (tile.last <= value || k + j >= count);
      if (k + j == 0) tile.first = value;
      if (k + j < count) tile.last = value;
    }
    if constexpr (E::kWeighted) {
      typename E::Weight weights[4];
      read_four(stage.weights, row, k, weights);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const auto w = static_cast<double>(weights[j]);
        const TwoTerms product = two_product(w, sign * static_cast<double>(values[j]));
        tile.total = tile.total + DoubleDouble{product.high, product.low};
        tile.weight = tile.weight + w;
        if (k + j < count) {
          tile.positive = tile.positive && w > 0;
          bits.see(values[j]);
          weight_bits.see(weights[j]);
        }
      }
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        tile.total = tile.total + sign * static_cast<double>(values[j]);
        bits.see(values[j]);
      }
    }
  }
  const double width = E::kWeighted ? tile.weight.high : static_cast<double>(kTile);
  const double center = tile.total.high / width;
  float height = 0;
  float lowest = 0;
  float spread = 0;
#pragma unroll 2
  for (int k = 0; k < kTile; k += 4) {
    typename E::Value values[4];
    read_four(stage.values, row, k, values);
    TrackedWeight<E> weights[4];
    if constexpr (E::kWeighted) read_four(stage.weights, row, k, weights);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      double term = __fma_rn(sign, static_cast<double>(values[j]), -center);
      if constexpr (E::kWeighted) term *= static_cast<double>(weights[j]);
      const auto d = static_cast<float>(term);
      height += d;
      lowest = fminf(lowest, height);
      spread += fabsf(d);
    }
  }
  const double size = fabs(center) * width;
  tile.depth = spread * 0x1p-18F - lowest + static_cast<float>(size * 0x1p-50) + 0x1p-140F;
  tile.magnitude = static_cast<double>(spread) * (1 + 0x1p-16) + size * (1 + 0x1p-40);
  tile.weight_magnitude = width * (1 + 0x1p-40);
  return tile;
}

// Starts the copy of the group that begins at element `first` of a row of which `left` elements are left.
template <class E>
__device__ void stage_elements(Stage<E>& stage, const E& row, std::int64_t first, int left) {
  const int count = min(left, kGroup);
  if (count > 0) {
    stage_group(stage.values, row.values + first, count);
    if constexpr (E::kWeighted) stage_group(stage.weights, row.weights + first, count);
  }
  __pipeline_commit();
}

// Whether the means of a full group's tiles nearly all rise. The warp.
template <class E>
__device__ bool means_rise(const TileScan<E>& tile, int count) {
  double mean = tile.total.high;
  if constexpr (E::kWeighted) mean /= tile.weight.high;
  const double next = __shfl_down_sync(0xffffffffU, mean, 1);
  const unsigned rising = __ballot_sync(0xffffffffU, threadIdx.x % 32 != 31 && mean < next);
  return count == kGroup && __popc(rising) >= 28;
}

// A lane's tile of a staged group and what is known of the whole group. `staged_next` is called as soon as
// the stage may be overwritten. `count`: elements of the group.
template <class E, class StagedNext>
__device__ TileScan<E> scan_group(const Stage<E>& stage, int count, double sign, ScanFacts& facts,
                                  StagedNext staged_next) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int own = min(count - lane * kTile, kTile);
  __pipeline_wait_prior(0);
  __syncwarp();
  TileScan<E> tile{};
  tile.positive = true;
  const Team<32> team{nullptr};
  if constexpr (kPlainTiles<E>) {
    float values[kTile];
#pragma unroll
    for (int k = 0; k < kTile; k += 4) {
      float four[4];
      read_four(stage.values, lane, k, four);
#pragma unroll
      for (int j = 0; j < 4; ++j) values[k + j] = four[j];
    }
    __syncwarp();
    staged_next();
    FloatUnit unit;
    tile = scan_float_tile<E>(values, sign, unit);
    facts.magnitude = team.reduce_sum(tile.magnitude) * (1 + 0x1p-40);
    facts.unit = unit.unit_of_warp();
    facts.allowed = facts.magnitude < 0x1p120;
    facts.rough = __any_sync(0xffffffffU, !exact_as_double(tile.magnitude, facts.unit)) != 0;
    facts.rising = means_rise(tile, count) ? 1 : 0;
    // Looked at only where it can be so.
    tile.sorted = facts.rising != 0 || count < kGroup;
    if (tile.sorted) {
#pragma unroll
      for (int k = 1; k < kTile; ++k) {
        const bool falls = sign > 0 ? values[k - 1] > values[k] : values[k - 1] < values[k];
        tile.sorted = tile.sorted && (!falls || k >= own);
      }
    }
  } else {
    BitTracker<typename E::Value> bits;
    BitTracker<TrackedWeight<E>> weight_bits;
    if (own > 0) tile = scan_pair_tile<E>(stage, own, sign, bits, weight_bits);
    __syncwarp();
    staged_next();
    bits.combine(team);
    facts.magnitude = team.reduce_sum(tile.magnitude) * (1 + 0x1p-40);
    facts.unit = bits.unit();
    facts.allowed = bits.finite() && facts.magnitude < 0x1p900;
    facts.rising = means_rise(tile, count) ? 1 : 0;
    // Heights run in floats: where what they hold underflows, nothing would be thrown away.
    facts.rough = !(facts.magnitude > 0x1p-100) && facts.magnitude > 0;
    if constexpr (E::kWeighted) {
      weight_bits.combine(team);
      facts.weight_magnitude = team.reduce_sum(tile.weight_magnitude) * (1 + 0x1p-40);
      facts.weight_unit = weight_bits.unit();
      facts.unit += facts.weight_unit;
      facts.allowed = facts.allowed && weight_bits.finite() && facts.weight_magnitude < 0x1p900 &&
                      __all_sync(0xffffffffU, tile.positive) != 0;
    }
  }
  const double after = __shfl_down_sync(0xffffffffU, tile.first, 1);
  const bool joined = count <= (lane + 1) * kTile || tile.last <= after;
  facts.sorted = __all_sync(0xffffffffU, own <= 0 || (tile.sorted && joined)) != 0 ? 1 : 0;
  // Sums over less than a tile say nothing of a chord of a tile's width.
  if (own < kTile) tile.depth = INFINITY;
  return tile;
}

}  // namespace isofold::cuda
