// A chunk: up to 32 elements a thread, staged in shared memory with their running totals, and the points of
// its diagram.
#pragma once

#include <cstdint>
#include <limits>

#include "cuda/elements.cuh"
#include "cuda/team.cuh"
#include "geometry/segments.hpp"

namespace isofold::cuda {

template <int Size>
inline constexpr int kChunk = Size* kTile;

// Where element i of a block's tiles stands: a column of padding keeps a warp's tiles in different banks.
__device__ inline int staged(int i) { return i + (i >> 5); }

template <class E, int Size>
struct ChunkStorage {
  static constexpr int kPrefixes = kBlock + kBlock / Size;  // one more a team: the chunk's end
  typename E::Value values[kBlock * (kTile + 1)];
  std::conditional_t<E::kWeighted, typename E::Weight, char> weights[E::kWeighted ? kBlock * (kTile + 1) : 1];
  double total_high[kPrefixes];
  double total_low[kPrefixes];
  double weight_high[E::kWeighted ? kPrefixes : 1];
  double weight_low[E::kWeighted ? kPrefixes : 1];
  std::uint32_t mask[kBlock];
  std::uint32_t occupied[kBlock / 32];  // bit t: tile t holds a vertex
  TeamScratch scratch;
};

// What is known of a chunk's numbers.
struct ChunkFacts {
  double magnitude;         // sum of |w y|, a little more rather than less
  int unit;                 // exponent of a power of two of which every term w y is a multiple
  double weight_magnitude;  // weighted only
  int weight_unit;
  bool allowed;        // all values finite, all weights finite and positive
  bool exact_doubles;  // unweighted, and every partial sum is exact as a double
};

// A chunk as one team sees it. Indices are relative to the chunk; `origin` is its first element in the row.
template <class E, int Size>
struct Chunk {
  ChunkStorage<E, Size>* storage;
  E row;
  std::int64_t origin;
  int length;
  int first_tile;    // of the team in the block
  int first_prefix;  // likewise
  double error;      // of the pairs of prefix sums of w y
  double weight_error;

  __device__ double value(int i) const {
    return row.sign * static_cast<double>(storage->values[staged(first_tile * kTile + i)]);
  }
  __device__ double weight(int i) const {
    if constexpr (E::kWeighted) return static_cast<double>(storage->weights[staged(first_tile * kTile + i)]);
    return 1.0;
  }
  __device__ int tiles() const { return (length + kTile - 1) / kTile; }
  __device__ std::uint32_t& mask(int tile) const { return storage->mask[first_tile + tile]; }
  __device__ double total(int tile) const { return storage->total_high[first_prefix + tile]; }

  // The sums before element i, as pairs with their errors.
  __device__ Point point(int i) const {
    const int tile = i / kTile;
    DoubleDouble sum{storage->total_high[first_prefix + tile], storage->total_low[first_prefix + tile]};
    Point point{origin + i, {{static_cast<double>(i), 0.0}, 0.0}, {}};
    if constexpr (E::kWeighted) {
      DoubleDouble weights{storage->weight_high[first_prefix + tile],
                           storage->weight_low[first_prefix + tile]};
      for (int k = tile * kTile; k < i; ++k) {
        const TwoTerms product = two_product(weight(k), value(k));
        sum = sum + DoubleDouble{product.high, product.low};
        weights = weights + weight(k);
      }
      point.weight = {weights, weight_error};
    } else {
      for (int k = tile * kTile; k < i; ++k) sum = sum + value(k);
    }
    point.total = {sum, error};
    return point;
  }

  // The same where doubles are exact.
  __device__ double exact_total(int i) const {
    const int tile = i / kTile;
    double sum = total(tile);
    for (int k = tile * kTile; k < i; ++k) sum += value(k);
    return sum;
  }

  __device__ std::int64_t at_or_before(std::int64_t i) const {
    return VertexMask(storage->mask + first_tile).previous(i);
  }
  __device__ std::int64_t at_or_after(std::int64_t i) const {
    if (i >= length) return length;
    const std::uint32_t* words = storage->mask + first_tile;
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
  return compare_products(d.total - b.total, b.index - a.index, b.total - a.total, d.index - b.index) > 0;
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
__device__ __noinline__ bool undecided_vertex(const E row, const Point a, const Point b, const Point d) {
  return is_vertex(a, b, d, [&](const Point& p, const Point& q, const Point& r) {
    return exact_turn(row, p.index, q.index, r.index);
  });
}

template <class E>
__device__ bool certified_vertex(const E& row, const Point& a, const Point& b, const Point& d) {
  const Turn turn = turn_in_doubles(a, b, d);
  return turn == Turn::undecided ? undecided_vertex(row, a, b, d) : turn == Turn::up;
}

template <class E, int Size>
struct CertifiedChain {
  using Point = isofold::Point;
  const Chunk<E, Size>& chunk;
  __device__ Point point(std::int64_t i) const { return chunk.point(static_cast<int>(i)); }
  __device__ bool is_vertex(const Point& a, const Point& b, const Point& d) const {
    return certified_vertex(chunk.row, a, b, d);
  }
  __device__ std::int64_t at_or_before(std::int64_t i) const { return chunk.at_or_before(i); }
  __device__ std::int64_t at_or_after(std::int64_t i) const { return chunk.at_or_after(i); }
};

// Copies the chunk's elements into shared memory, neighbouring threads neighbouring elements.
template <class E, int Size>
__device__ void stage(const Chunk<E, Size>& chunk) {
  const auto* values = chunk.row.values + chunk.origin;
  const int base = chunk.first_tile * kTile;
#pragma unroll 8
  for (int i = Team<Size>::rank(); i < chunk.length; i += Size) {
    chunk.storage->values[staged(base + i)] = values[i];
  }
  if constexpr (E::kWeighted) {
    const auto* weights = chunk.row.weights + chunk.origin;
#pragma unroll 8
    for (int i = Team<Size>::rank(); i < chunk.length; i += Size) {
      chunk.storage->weights[staged(base + i)] = weights[i];
    }
  }
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
    smallest = min(smallest, twice - 1);
    largest = max(largest, twice);
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
    smallest = min(smallest, twice - 1);
    largest = max(largest, twice);
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

// Sums every tile, scans the sums over the team into storage, and finds what can be said about their errors.
// Where doubles are not exact the sums are formed again as pairs.
template <class E, int Size>
__device__ ChunkFacts sum_tiles(Chunk<E, Size>& chunk, const Team<Size>& team) {
  using T = Team<Size>;
  auto* storage = chunk.storage;
  const int begin = T::rank() * kTile;
  const int end = min(begin + kTile, chunk.length);
  const int at = chunk.first_prefix + T::rank();

  BitTracker<typename E::Value> bits;
  double sum = 0;
  double magnitude = 0;
  const auto* values = storage->values + staged(chunk.first_tile * kTile + begin);
  if constexpr (std::is_same_v<typename E::Value, float> && !E::kWeighted) {
    float rough = 0;
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
  chunk.weight_error = 0.0;
  if constexpr (!E::kWeighted) {
    facts.magnitude = team.reduce_sum(magnitude) * (1 + 0x1p-40);
    facts.exact_doubles = exact_as_double(facts.magnitude, facts.unit) && facts.magnitude < 0x1p900;
    if (facts.exact_doubles) {
      const auto scanned = team.scan(chunk.row.sign * sum);
      storage->total_high[at] = scanned.before;
      storage->total_low[at] = 0;
      if (T::rank() == 0) {
        storage->total_high[chunk.first_prefix + Size] = scanned.all;
        storage->total_low[chunk.first_prefix + Size] = 0;
      }
      chunk.error = 0;
      team.sync();
      return facts;
    }
  }
  // Pairs.
  DoubleDouble pair{};
  DoubleDouble weights{};
  double product_magnitude = 0;
  double weight_magnitude = 0;
  if constexpr (E::kWeighted) {
    BitTracker<typename E::Weight> weight_bits;
    bool positive = true;
    for (int i = begin; i < end; ++i) {
      const double w = chunk.weight(i);
      const TwoTerms product = two_product(w, chunk.value(i));
      weight_bits.see(storage->weights[staged(chunk.first_tile * kTile + i)]);
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
    storage->weight_high[at] = scanned.before.high;
    storage->weight_low[at] = scanned.before.low;
    if (T::rank() == 0) {
      storage->weight_high[chunk.first_prefix + Size] = scanned.all.high;
      storage->weight_low[chunk.first_prefix + Size] = scanned.all.low;
    }
    chunk.weight_error = pair_error(facts.weight_magnitude, facts.weight_unit, false);
  } else {
    for (int i = begin; i < end; ++i) pair = pair + chunk.value(i);
  }
  const auto scanned = team.scan(pair);
  storage->total_high[at] = scanned.before.high;
  storage->total_low[at] = scanned.before.low;
  if (T::rank() == 0) {
    storage->total_high[chunk.first_prefix + Size] = scanned.all.high;
    storage->total_low[chunk.first_prefix + Size] = scanned.all.low;
  }
  chunk.error = pair_error(facts.magnitude, facts.unit, E::kWeighted);
  team.sync();
  return facts;
}

}  // namespace isofold::cuda
