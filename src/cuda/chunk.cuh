// A chunk: up to 32 elements a thread, staged in shared memory with their running totals, and the points of
// its diagram.
#pragma once

#include <cuda_pipeline.h>

#include <cstdint>
#include <limits>

#include "cuda/elements.cuh"
#include "cuda/team.cuh"
#include "geometry/segments.hpp"

namespace isofold::cuda {

template <int Size>
inline constexpr int kChunk = Size * kTile;

// Where element i of a block's tiles stands: a column of padding keeps a warp's tiles in different banks.
__device__ inline int staged(int i) { return i + (i >> 5); }

// A team's elements stand in a region of its own, as values and weights, or, where doubles are exact, as the
// running totals before every element in the place of the values.
template <class E, int Size>
struct ChunkStorage {
  static constexpr int kTeams = kBlock / Size;
  static constexpr int kSlots = Size * (kTile + 1);
  struct Pairs {  // of running totals, at tile starts and at the end
    double total_high[Size + 1];
    double total_low[Size + 1];
    double weight_high[E::kWeighted ? Size + 1 : 1];
    double weight_low[E::kWeighted ? Size + 1 : 1];
  };
  // One float32 row a block leaves half of its region free, and the pairs fit there.
  static constexpr bool kPairsInside = Size == kBlock && !E::kWeighted && sizeof(typename E::Value) == 4;
  union Region {
    struct {
      typename E::Value values[kSlots];
      std::conditional_t<E::kWeighted, typename E::Weight, char> weights[E::kWeighted ? kSlots : 1];
      std::conditional_t<kPairsInside, Pairs, char> pairs;
    };
    double totals[E::kWeighted ? 1 : kSlots];
  };
  Region regions[kTeams];
  std::conditional_t<kPairsInside, char, Pairs> pairs[kPairsInside ? 1 : kTeams];
  std::uint32_t mask[kBlock];
  std::uint32_t occupied[kBlock / 32];  // bit t: tile t holds a vertex
  TeamScratch scratch;

  __device__ Region& region() { return regions[Team<Size>::index()]; }
  __device__ Pairs& own_pairs() {
    if constexpr (kPairsInside) {
      return regions[0].pairs;
    } else {
      return pairs[Team<Size>::index()];
    }
  }
};

// What is known of a chunk's numbers.
struct ChunkFacts {
  double magnitude;         // sum of |w y|, a little more rather than less
  int unit;                 // exponent of a power of two of which every term w y is a multiple
  double weight_magnitude;  // weighted only
  int weight_unit;
  bool allowed;  // all values finite, all weights finite and positive
};

// A chunk as one team sees it. Indices are relative to the chunk; `origin` is its first element in the row.
template <class E, int Size>
struct Chunk {
  ChunkStorage<E, Size>* storage;
  E row;
  std::int64_t origin;
  int length;
  double error = 0.0;         // of the pairs of running totals of w y
  double weight_error = 0.0;  // of those of w
  bool exact = false;         // storage holds exact running totals in place of the values
  double end_total = 0.0;     // exact: the total of the chunk
  std::uint32_t rising = 0;   // of the thread's tile: points where the values rise, and the first point

  __device__ auto& values() const { return storage->region().values; }
  __device__ double value(int i) const {
    if constexpr (!E::kWeighted) {
      if (exact) return exact_total(i + 1) - exact_total(i);
    }
    return row.sign * static_cast<double>(values()[staged(i)]);
  }
  __device__ double weight(int i) const {
    if constexpr (E::kWeighted) return static_cast<double>(storage->region().weights[staged(i)]);
    return 1.0;
  }
  __device__ int tiles() const { return (length + kTile - 1) / kTile; }
  __device__ std::uint32_t& mask(int tile) const { return storage->mask[Team<Size>::index() * Size + tile]; }

  // The sums before element i, as pairs with their errors; not where totals are exact.
  __device__ Point point(int i) const {
    const int tile = i / kTile;
    DoubleDouble sum = total_before(tile);
    DoubleDouble weights = weight_before(tile);
    for (int k = tile * kTile; k < i; ++k) add_element<E>(*this, k, sum, weights);
    Point point{origin + i, {{static_cast<double>(i), 0.0}, 0.0}, {}};
    if constexpr (E::kWeighted) point.weight = {weights, weight_error};
    point.total = {sum, error};
    return point;
  }

  // The sum before element i where totals are exact.
  __device__ double exact_total(int i) const {
    return i >= length ? end_total : storage->region().totals[staged(i)];
  }
  // The pair of sums before a tile, or before the end (tile == Size).
  __device__ DoubleDouble total_before(int tile) const {
    if (exact) return {tile == Size ? end_total : exact_total(tile * kTile), 0.0};
    return {storage->own_pairs().total_high[tile], storage->own_pairs().total_low[tile]};
  }
  __device__ DoubleDouble weight_before(int tile) const {
    if constexpr (E::kWeighted) {
      return {storage->own_pairs().weight_high[tile], storage->own_pairs().weight_low[tile]};
    }
    return {};
  }

  __device__ std::int64_t at_or_before(std::int64_t i) const { return VertexMask(&mask(0)).previous(i); }
  __device__ std::int64_t at_or_after(std::int64_t i) const {
    if (i >= length) return length;
    const std::uint32_t* words = &mask(0);
    int word = static_cast<int>(i) / kTile;
    std::uint32_t bits = words[word] & (~0U << (i % kTile));
    while (bits == 0) {
      if (++word >= tiles()) return length;  // the chunk's end, the last point of every chain
      bits = words[word];
    }
    return word * kTile + __ffs(static_cast<int>(bits)) - 1;
  }
};

// Chains of a chunk's vertices for ChainBridge.
struct LightPoint {
  int index;
  double total;
};
__device__ inline bool light_vertex(const LightPoint& a, const LightPoint& b, const LightPoint& d) {
  return product_above(d.total - b.total, b.index - a.index, b.total - a.total, d.index - b.index);
}

template <class E, int Size>
struct ExactDoublesChain {
  using Point = LightPoint;
  const Chunk<E, Size>& chunk;
  __device__ Point point(std::int64_t i) const {
    return {static_cast<int>(i), chunk.exact_total(static_cast<int>(i))};
  }
  __device__ bool is_vertex(const Point& a, const Point& b, const Point& d) const {
    return light_vertex(a, b, d);
  }
  __device__ std::int64_t at_or_before(std::int64_t i) const { return chunk.at_or_before(i); }
  __device__ std::int64_t at_or_after(std::int64_t i) const { return chunk.at_or_after(i); }
};

// What doubles could not decide: kept out of line, for it is long and rare.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool undecided_vertex(const E row, const Point a, const Point b, const Point d) {
  return is_vertex(a, b, d, [&](const Point& p, const Point& q, const Point& r) {
    return exact_turn(row, p.index, q.index, r.index);
  });
}

template <class E>
__device__ bool certified_vertex(const E& row, const Point& a, const Point& b, const Point& d) {
  if constexpr (!kCertified) {
    return difference(a.weight, b.weight).value * difference(b.total, d.total).value >
           difference(a.total, b.total).value * difference(b.weight, d.weight).value;
  }
  const Turn turn = turn_in_doubles(a, b, d);
  return turn == Turn::undecided ? undecided_vertex(row, a, b, d) : turn == Turn::up;
}

template <class E, int Size>
struct CertifiedChain {
  using Point = isofold::Point;
  const Chunk<E, Size>& chunk;
  ISOFOLD_DEVICE_OUT_OF_LINE Point point(std::int64_t i) const { return chunk.point(static_cast<int>(i)); }
  ISOFOLD_DEVICE_OUT_OF_LINE bool is_vertex(const Point& a, const Point& b, const Point& d) const {
    return certified_vertex(chunk.row, a, b, d);
  }
  __device__ std::int64_t at_or_before(std::int64_t i) const { return chunk.at_or_before(i); }
  __device__ std::int64_t at_or_after(std::int64_t i) const { return chunk.at_or_after(i); }
};

// Copies the chunk's elements into shared memory, neighbouring threads neighbouring elements, all in flight
// at once.
template <class E, int Size>
__device__ void stage(const Chunk<E, Size>& chunk) {
  auto& region = chunk.storage->region();
  const auto* values = chunk.row.values + chunk.origin;
#pragma unroll 8
  for (int i = Team<Size>::rank(); i < chunk.length; i += Size) {
    __pipeline_memcpy_async(region.values + staged(i), values + i, sizeof *values);
  }
  if constexpr (E::kWeighted) {
    const auto* weights = chunk.row.weights + chunk.origin;
#pragma unroll 8
    for (int i = Team<Size>::rank(); i < chunk.length; i += Size) {
      __pipeline_memcpy_async(region.weights + staged(i), weights + i, sizeof *weights);
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
}

// The unit of the values seen and whether all are finite. Integer operations on the bits: three an element.
template <class T>
struct BitTracker;

template <>
struct BitTracker<float> {
  std::uint32_t smallest = ~0U;  // of 2 |bits| - 1, which makes zero the largest
  std::uint32_t largest = 0;     // of 2 |bits|
  std::uint32_t mantissas = 0;
  __device__ void see(float value) {
    const std::uint32_t twice = __float_as_uint(value) << 1;
    largest = max(largest, twice);
    if constexpr (!kCertified) return;
    smallest = min(smallest, twice - 1);
    mantissas |= twice;
  }
  template <class AnyTeam>
  __device__ void combine(const AnyTeam& team) {
    const auto high = team.reduce((static_cast<unsigned long long>(largest) << 32) | ~smallest,
                                  [](unsigned long long a, unsigned long long b) {
                                    const auto x = max(a >> 32, b >> 32);
                                    const auto y = max(a & 0xffffffffULL, b & 0xffffffffULL);
                                    return (x << 32) | y;
                                  });
    largest = static_cast<std::uint32_t>(high >> 32);
    smallest = ~static_cast<std::uint32_t>(high);
    mantissas = static_cast<std::uint32_t>(
        team.reduce(mantissas, [](unsigned long long a, unsigned long long b) { return a | b; }));
  }
  __device__ bool finite() const { return largest < 0xff000000U; }
  __device__ double largest_magnitude() const { return __uint_as_float(largest >> 1); }
  __device__ int unit() const {
    if (smallest == ~0U) return UnitTracker::kNone;
    const int field = max(static_cast<int>((smallest + 1) >> 24), 1);
    return field - 150 + trailing_zeros(((mantissas >> 1) & 0x7fffffU) | 0x800000U);
  }
};

template <>
struct BitTracker<double> {
  unsigned long long smallest = ~0ULL;
  unsigned long long largest = 0;
  unsigned long long mantissas = 0;
  __device__ void see(double value) {
    const unsigned long long twice = static_cast<unsigned long long>(__double_as_longlong(value)) << 1;
    largest = max(largest, twice);
    if constexpr (!kCertified) return;
    smallest = min(smallest, twice - 1);
    mantissas |= twice;
  }
  template <class AnyTeam>
  __device__ void combine(const AnyTeam& team) {
    largest = team.reduce(largest, [](unsigned long long a, unsigned long long b) { return max(a, b); });
    smallest = team.reduce(smallest, [](unsigned long long a, unsigned long long b) { return min(a, b); });
    mantissas = team.reduce(mantissas, [](unsigned long long a, unsigned long long b) { return a | b; });
  }
  __device__ bool finite() const { return largest < 0xffe0000000000000ULL; }
  __device__ double largest_magnitude() const {
    return __longlong_as_double(static_cast<long long>(largest >> 1));
  }
  __device__ int unit() const {
    if (smallest == ~0ULL) return UnitTracker::kNone;
    const int field = max(static_cast<int>((smallest + 1) >> 53), 1);
    return field - 1075 + trailing_zeros(((mantissas >> 1) & 0xfffffffffffffULL) | (1ULL << 52));
  }
};

// The error of a pair of sums of these terms, however they were added: no path has 2^14 operations.
__device__ inline double pair_error(double magnitude, int unit, bool products) {
  if (exact_as_pair(magnitude, unit)) return 0.0;
  return 0x1p18 * kUnitRoundoff * kUnitRoundoff * magnitude + (products ? 0x1p-1030 : 0x1p-1070);
}

// Puts the running totals before every element in the place of the values, from that before the tile. Only
// where they are exact. Ends in step.
template <class E, int Size>
__device__ void keep_totals(Chunk<E, Size>& chunk, double before, double all) {
  const int begin = Team<Size>::rank() * kTile;
  const int count = min(kTile, chunk.length - begin);
  auto& region = chunk.storage->region();
  const int slot = staged(begin);
  if constexpr (std::is_same_v<typename E::Value, float>) {
    // Totals are wider than values and fall on other threads' values: all are read before any is written.
    float values[kTile];
#pragma unroll
    for (int k = 0; k < kTile; ++k) values[k] = k < count ? region.values[slot + k] : 0.0F;
    Team<Size>::sync();
    double running = before;
#pragma unroll
    for (int k = 0; k < kTile; ++k) {
      if (k < count) region.totals[slot + k] = running;
      running += chunk.row.sign * static_cast<double>(values[k]);
    }
  } else {
    Team<Size>::sync();
    double running = before;
    for (int k = 0; k < count; ++k) {
      const double value = chunk.row.sign * region.values[slot + k];
      region.totals[slot + k] = running;
      running += value;
    }
  }
  chunk.exact = true;
  chunk.end_total = all;
  chunk.error = 0.0;
  Team<Size>::sync();
}

// Points of the thread's tile that can be vertices: where the values rise, and the chunk's first.
template <class E, int Size>
__device__ std::uint32_t rising_points(const Chunk<E, Size>& chunk) {
  const int begin = Team<Size>::rank() * kTile;
  const int count = min(kTile, chunk.length - begin);
  if (count <= 0) return 0;
  const auto& values = chunk.values();
  const int slot = staged(begin);
  std::uint32_t points = 0;
  auto previous = begin == 0 ? values[slot] : values[staged(begin - 1)];
  const bool up = chunk.row.sign > 0;
#pragma unroll 8
  for (int k = 0; k < count; ++k) {
    const auto value = values[slot + k];
    if (up ? previous < value : previous > value) points |= 1U << k;
    previous = value;
  }
  return begin == 0 ? points | 1U : points;
}

// Sums every tile, scans the sums over the team into storage, and finds what can be said about their errors.
// Where doubles are not exact the sums are formed again as pairs.
template <class E, int Size>
__device__ ChunkFacts sum_tiles(Chunk<E, Size>& chunk, const Team<Size>& team) {
  using T = Team<Size>;
  auto& prefixes = chunk.storage->own_pairs();
  const int begin = T::rank() * kTile;
  const int end = min(begin + kTile, chunk.length);
  const int at = T::rank();

  chunk.rising = rising_points(chunk);
  BitTracker<typename E::Value> bits;
  double sum = 0;
  double magnitude = 0;
  const auto* values = chunk.values() + staged(begin);
  if constexpr (std::is_same_v<typename E::Value, float> && !E::kWeighted) {
    float rough = 0;
#pragma unroll 8
    for (int i = begin; i < end; ++i) {
      const float v = values[i - begin];
      bits.see(v);
      sum += static_cast<double>(v);
      rough += fabsf(v);
    }
    magnitude = rough * (1 + 0x1p-16);
    if (!(magnitude < 0x1p127)) magnitude = 32.0 * bits.largest_magnitude();
    magnitude += 0x1p-148;
  } else if constexpr (!E::kWeighted) {
#pragma unroll 8
    for (int i = begin; i < end; ++i) {
      const auto v = values[i - begin];
      bits.see(v);
      sum += static_cast<double>(v);
      magnitude += fabs(static_cast<double>(v));
    }
  } else {
    for (int i = begin; i < end; ++i) bits.see(values[i - begin]);
  }
  bits.combine(team);

  ChunkFacts facts{};
  facts.allowed = bits.finite();
  facts.unit = bits.unit();
  chunk.exact = false;
  chunk.weight_error = 0.0;
  if constexpr (!E::kWeighted) {
    facts.magnitude = team.reduce_sum(magnitude) * (1 + 0x1p-40);
    if (exact_as_double(facts.magnitude, facts.unit) && facts.magnitude < 0x1p900) {
      const auto scanned = team.scan(chunk.row.sign * sum);
      keep_totals(chunk, scanned.before, scanned.all);
      return facts;
    }
  }
  // Pairs.
  DoubleDouble pair{};
  DoubleDouble weights{};
  if constexpr (E::kWeighted) {
    double product_magnitude = 0;
    double weight_magnitude = 0;
    BitTracker<typename E::Weight> weight_bits;
    bool positive = true;
    for (int i = begin; i < end; ++i) {
      const double w = chunk.weight(i);
      const TwoTerms product = two_product(w, chunk.value(i));
      weight_bits.see(chunk.storage->region().weights[staged(i)]);
      positive = positive && w > 0;
      pair = pair + DoubleDouble{product.high, product.low};
      weights = weights + w;
      product_magnitude += fabs(product.high);
      weight_magnitude += w;
    }
    weight_bits.combine(team);
    facts.weight_unit = weight_bits.unit();
    facts.allowed = facts.allowed && weight_bits.finite() &&
                    team.reduce(positive, [](unsigned long long a, unsigned long long b) { return a & b; });
    facts.magnitude = team.reduce_sum(product_magnitude) * (1 + 0x1p-40);
    facts.weight_magnitude = team.reduce_sum(weight_magnitude) * (1 + 0x1p-40);
    facts.unit += facts.weight_unit;
    const auto scanned = team.scan(weights);
    prefixes.weight_high[at] = scanned.before.high;
    prefixes.weight_low[at] = scanned.before.low;
    if (T::rank() == 0) {
      prefixes.weight_high[Size] = scanned.all.high;
      prefixes.weight_low[Size] = scanned.all.low;
    }
    chunk.weight_error = pair_error(facts.weight_magnitude, facts.weight_unit, false);
  } else {
    for (int i = begin; i < end; ++i) pair = pair + chunk.value(i);
  }
  const auto scanned = team.scan(pair);
  prefixes.total_high[at] = scanned.before.high;
  prefixes.total_low[at] = scanned.before.low;
  if (T::rank() == 0) {
    prefixes.total_high[Size] = scanned.all.high;
    prefixes.total_low[Size] = scanned.all.low;
  }
  chunk.error = pair_error(facts.magnitude, facts.unit, E::kWeighted);
  T::sync();
  return facts;
}

}  // namespace isofold::cuda
