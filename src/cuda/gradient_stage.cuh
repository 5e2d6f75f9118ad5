// A chunk in shared memory, what is known of its terms, and sums of pieces of it.
#pragma once

#include <cstdint>

#include "cuda/gradient_plan.cuh"
#include "cuda/gradient_scan.cuh"
#include "cuda/gradient_units.cuh"

namespace isofold::cuda {

// Where element i of a chunk stands in shared memory: a column of padding keeps a warp's tiles in different
// banks.
__device__ inline int gradient_slot(int i) { return i + i / kGradientTile; }

template <class I, bool kMean>
struct GradientShared {
  static constexpr int kSlots = kGradientChunk + kBlock;
  static constexpr int kWords = kGradientChunk / 32;
  // The incoming gradient, then the outgoing one; likewise values and the gradient in the weights.
  typename I::Gradient gradient[kSlots];
  typename I::Value values[kMean ? kSlots : 1];
  std::conditional_t<I::kWeighted, typename I::Weight, char> weights[I::kWeighted ? kSlots : 1];
  std::uint16_t starts[kBlock];  // a bit an element of a tile: it starts a block
  // A bit an element: it is not allowed; its gradient is not finite. Only where something of the kind was
  // met.
  std::uint32_t refused[kWords];
  std::uint32_t not_finite[kWords];
  // The answer for the block that begins last in a tile, where a later tile of the chunk ends it.
  double share_high[kBlock];
  double share_low[I::kWeighted ? kBlock : 1];
  double share_error[I::kWeighted ? kBlock : 1];
  double mean[kMean ? kBlock : 1];
  double slope[kMean ? kBlock : 1];
  int block_end[kBlock];  // 0: no tile of the chunk ends it
  OpenBlock<PieceSums> warps[kBlock / 32];
  OpenBlock<PlainSums> plain_warps[kBlock / 32];
  TermBits incoming_bits;
  TermBits weight_bits;
  TermBits value_bits;
  TermUnits units;
  double incoming_size;  // above all sums of magnitudes
  double total_size;
  int closes;  // a block ends with the chunk
  int head_end;
  int tail_begin;

  __device__ void keep(int tile, const BlockAnswer& answer, int end) {
    share_high[tile] = answer.share.high;
    if constexpr (I::kWeighted) {
      share_low[tile] = answer.share.low;
      share_error[tile] = answer.share.error;
    }
    if constexpr (kMean) {
      mean[tile] = answer.mean;
      slope[tile] = answer.slope;
    }
    block_end[tile] = end;
  }
  [[nodiscard]] __device__ BlockAnswer kept(int tile) const {
    BlockAnswer answer;
    answer.share.high = share_high[tile];
    if constexpr (I::kWeighted) {
      answer.share.low = share_low[tile];
      answer.share.error = share_error[tile];
    }
    if constexpr (kMean) {
      answer.mean = mean[tile];
      answer.slope = slope[tile];
    }
    return answer;
  }
};

// A chunk as a thread sees it, which owns one tile.
template <class I, bool kMean>
struct StagedChunk {
  using Shared = GradientShared<I, kMean>;
  using Gradient = typename I::Gradient;
  using Value = typename I::Value;
  using Weight = std::conditional_t<I::kWeighted, typename I::Weight, float>;
  static constexpr int kRoundSlots = kBlock + kBlock / kGradientTile;

  const GradientPlan<I>& plan;
  Shared& shared;
  std::int64_t begin;  // of the chunk in the batch
  int length;
  bool plain = false;      // all sums within the chunk are exact as doubles
  bool spoiled = false;    // something is marked
  bool continues = false;  // the tile's first value is not the one before it

  [[nodiscard]] __device__ static int tile() { return static_cast<int>(threadIdx.x) * kGradientTile; }
  [[nodiscard]] __device__ static int tile_slot() {
    return static_cast<int>(threadIdx.x) * (kGradientTile + 1);
  }
  [[nodiscard]] __device__ int count() const { return min(max(length - tile(), 0), kGradientTile); }
  [[nodiscard]] __device__ unsigned starts() const { return shared.starts[threadIdx.x]; }
  // Whether an element, the first after the tile, starts a block or lies behind the last.
  [[nodiscard]] __device__ bool ends_after_tile() const {
    if (tile() + kGradientTile < length) return (shared.starts[threadIdx.x + 1] & 1U) != 0;
    return shared.closes != 0;
  }
  [[nodiscard]] __device__ unsigned marked(const std::uint32_t* words) const {
    if (!spoiled) return 0;
    return (words[threadIdx.x / 2] >> (threadIdx.x % 2 * kGradientTile)) & 0xffffU;
  }

  // The tile's starts, 16 bytes, at once where they are aligned; not looked at before they are needed.
  struct StartBytes {
    uint4 words;
    bool whole;
  };
  [[nodiscard]] __device__ StartBytes read_starts() const {
    const std::uint8_t* bytes = plan.block_starts + begin + tile();
    const bool whole = count() == kGradientTile && reinterpret_cast<std::uintptr_t>(bytes) % 16 == 0;
    return {whole ? *reinterpret_cast<const uint4*>(bytes) : uint4{}, whole};
  }
  [[nodiscard]] __device__ unsigned start_bits(const StartBytes& read) const {
    // A one in each byte that is not zero; the product moves those of a word to its top four bits.
    const auto four = [](unsigned word) { return __vsetne4(word, 0U) * 0x10204080U >> 28; };
    const uint4& words = read.words;
    unsigned bits = four(words.x) | four(words.y) << 4 | four(words.z) << 8 | four(words.w) << 12;
    if (!read.whole) {
      const std::uint8_t* bytes = plan.block_starts + begin + tile();
#pragma unroll 1
      for (int k = 0; k < count(); ++k) bits |= bytes[k] != 0 ? 1U << k : 0U;
    }
    return begin + tile() == 0 && count() > 0 ? bits | 1U : bits;
  }

  // Every 256th element of a full chunk to each thread; whether all of them are allowed and finite.
  __device__ bool stage_full() const {
    const int thread = static_cast<int>(threadIdx.x);
    const int slot = gradient_slot(thread);
    const Gradient* gradient = plan.input.gradient + begin + thread;
    const Value* values = plan.input.values + begin + thread;
    TermTracker<Gradient> incoming;
    TermTracker<Value> value;
    TermTracker<Weight> weight;
    bool positive = true;
#pragma unroll 8
    for (int round = 0; round < kGradientTile; ++round) {
      const Gradient g = gradient[round * kBlock];
      incoming.see(g);
      shared.gradient[slot + round * kRoundSlots] = g;
      const Value y = values[round * kBlock];
      value.see(y);
      if constexpr (kMean) shared.values[slot + round * kRoundSlots] = y;
      if constexpr (I::kWeighted) {
        const Weight w = plan.input.weights[begin + thread + round * kBlock];
        weight.see(w);
        positive = positive && w > 0;
        shared.weights[slot + round * kRoundSlots] = w;
      }
    }
    leave_bits(incoming, value, weight);
    return incoming.finite() && value.finite() && weight.finite() && positive;
  }

  // The same for any chunk. What is not allowed is marked, and replaced by what harms no sum.
  __device__ void stage_marked() const {
    const int thread = static_cast<int>(threadIdx.x);
    TermTracker<Gradient> incoming;
    TermTracker<Value> value;
    TermTracker<Weight> weight;
    for (int i = thread; i < kGradientChunk; i += kBlock) {
      const bool inside = i < length;
      const std::int64_t at = begin + i;
      Gradient g = inside ? plan.input.gradient[at] : 0;
      Value y = inside ? plan.input.values[at] : 0;
      bool refused = !isfinite(y);
      const bool not_finite = !isfinite(g);
      if constexpr (I::kWeighted) {
        Weight w = inside ? plan.input.weights[at] : 1;
        const bool right = isfinite(w) && w > 0;
        refused = refused || !right;
        if (!right) w = 1;
        if (inside) weight.see(w);
        shared.weights[gradient_slot(i)] = w;
      }
      if (not_finite) g = 0;
      incoming.see(g);
      shared.gradient[gradient_slot(i)] = g;
      if constexpr (kMean) {
        if (!isfinite(y)) y = 0;
        value.see(y);
        shared.values[gradient_slot(i)] = y;
      }
      const unsigned refused_bits = __ballot_sync(0xffffffffU, refused);
      const unsigned not_finite_bits = __ballot_sync(0xffffffffU, not_finite);
      if (thread % 32 == 0) {
        shared.refused[i / 32] = refused_bits;
        shared.not_finite[i / 32] = not_finite_bits;
      }
    }
    leave_bits(incoming, value, weight);
  }

  __device__ void leave_bits(const TermTracker<Gradient>& incoming, const TermTracker<Value>& value,
                             const TermTracker<Weight>& weight) const {
    incoming.leave(shared.incoming_bits);
    if constexpr (kMean) value.leave(shared.value_bits);
    if constexpr (I::kWeighted) weight.leave(shared.weight_bits);
  }
  __device__ void clear_bits() const {
    if (threadIdx.x == 0) {
      shared.incoming_bits.clear();
      shared.weight_bits.clear();
      shared.value_bits.clear();
    }
    __syncthreads();
  }

  // Reads the chunk, and finds out what is known of its terms. The shared units and sizes stand after the
  // next synchronisation.
  __device__ void stage() {
    const StartBytes read = read_starts();
    clear_bits();
    const bool good = length == kGradientChunk && stage_full();
    shared.starts[threadIdx.x] = static_cast<std::uint16_t>(start_bits(read));
    shared.block_end[threadIdx.x] = 0;
    if (threadIdx.x == 0) {
      const std::int64_t end = begin + length;
      shared.closes = end == plan.total || plan.block_starts[end] != 0;
      shared.tail_begin = length;
      shared.head_end = length;
    }
    if (__syncthreads_and(static_cast<int>(good)) == 0) {
      clear_bits();
      stage_marked();
      spoiled = true;
      __syncthreads();
    }
    // Sums of magnitudes are below 2^12 times the largest term; a sum of multiples of one unit that is below
    // 2^53 of them is exact in doubles, and products are such terms themselves.
    constexpr int kCount = 12;
    static_assert(kGradientChunk == 1 << kCount);
    const auto exact = [](const TermRange& range) {
      return range.top + kCount <= range.unit + 53 && range.unit >= -1074;
    };
    const TermRange incoming = TermTracker<Gradient>::range(shared.incoming_bits);
    TermRange weight{0, 0};
    TermRange total{0, 0};
    plain = exact(incoming);
    if constexpr (I::kWeighted) {
      weight = TermTracker<Weight>::range(shared.weight_bits);
      plain = plain && exact(weight);
    }
    if constexpr (kMean) {
      const TermRange value = TermTracker<Value>::range(shared.value_bits);
      total = {value.unit + weight.unit, value.top + weight.top};
      plain = plain && exact(total);
      if (count() > 0 && begin + tile() > 0) {
        const auto first = shared.values[tile_slot()];
        continues =
            tile() > 0 ? first != shared.values[tile_slot() - 2] : first != plan.input.values[begin - 1];
      }
    }
    if (threadIdx.x == 0) {
      shared.units = {incoming.unit, weight.unit, total.unit};
      shared.incoming_size = power_of_two(incoming.top + kCount);
      shared.total_size = power_of_two(total.top + kCount);
    }
  }

  // Adds element k of the thread's tile, which begins at `slot`, to sums that are exact as doubles.
  __device__ void add_plain(PieceSums& sums, int slot, int k) const {
    sums.incoming.high += static_cast<double>(shared.gradient[slot + k]);
    double w = 1.0;
    if constexpr (I::kWeighted) {
      w = static_cast<double>(shared.weights[slot + k]);
      sums.weight.high += w;
    }
    if constexpr (kMean) sums.total.high += w * static_cast<double>(shared.values[slot + k]);
  }
  // The same to pairs.
  __device__ void add_pair(PieceSums& sums, int slot, int k) const {
    const auto g = static_cast<double>(shared.gradient[slot + k]);
    sums.incoming = sums.incoming + g;
    sums.incoming_size += fabs(g);
    double w = 1.0;
    if constexpr (I::kWeighted) {
      w = static_cast<double>(shared.weights[slot + k]);
      sums.weight = sums.weight + w;
    }
    if constexpr (kMean) {
      const auto y = static_cast<double>(shared.values[slot + k]);
      if constexpr (I::kWeighted) {
        const TwoTerms product = two_product(w, y);
        sums.total = sums.total + DoubleDouble{product.high, product.low};
        sums.total_size += fabs(product.high);
      } else {
        sums.total = sums.total + y;
        sums.total_size += fabs(y);
      }
    }
  }

  // Adds the elements [from, to) of the thread's tile. `continues_block`: the first of them is not the first
  // of its block.
  __device__ void add(PieceSums& sums, int from, int to, bool continues_block) const {
    if (from >= to) return;
    const int slot = tile_slot();
    if (plain) {
#pragma unroll 1
      for (int k = from; k < to; ++k) add_plain(sums, slot, k);
    } else {
#pragma unroll 1
      for (int k = from; k < to; ++k) add_pair(sums, slot, k);
    }
    mark(sums, from, to, continues_block);
  }
  // The same for a whole tile, which many are.
  __device__ void add_tile(PieceSums& sums) const {
    const int slot = tile_slot();
    if (plain) {
#pragma unroll
      for (int k = 0; k < kGradientTile; ++k) add_plain(sums, slot, k);
    } else {
#pragma unroll 4
      for (int k = 0; k < kGradientTile; ++k) add_pair(sums, slot, k);
    }
    mark(sums, 0, kGradientTile, true);
  }
  __device__ void mark(PieceSums& sums, int from, int to, bool continues_block) const {
    const int slot = tile_slot();
    if constexpr (kMean) {
      bool varied = continues_block && continues;
#pragma unroll 1
      for (int k = from + 1; k < to; ++k) varied |= shared.values[slot + k] != shared.values[slot + k - 1];
      if (varied) sums.marks |= kVaried;
    }
    if (spoiled) {
      const unsigned range = (0xffffU >> (kGradientTile - (to - from))) << from;
      if ((marked(shared.refused) & range) != 0) sums.marks |= kRefused;
      if ((marked(shared.not_finite) & range) != 0) sums.marks |= kNotFinite;
    }
  }
};

}  // namespace isofold::cuda
