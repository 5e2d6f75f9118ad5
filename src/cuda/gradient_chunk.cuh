// One pass over a chunk: the gradients of all blocks that lie inside, and partial sums for those that do not.
#pragma once

#include <cstdint>

#include "cuda/gradient_exact.cuh"
#include "cuda/gradient_plan.cuh"
#include "cuda/gradient_scan.cuh"
#include "cuda/gradient_stage.cuh"
#include "cuda/start_kernel.cuh"
#include "exact/gradient_in_weights.hpp"

namespace isofold::cuda {

// What becomes of a chunk's blocks.
template <class I, bool kMean>
struct GradientChunk : StagedChunk<I, kMean> {
  using Base = StagedChunk<I, kMean>;
  using Base::begin;
  using Base::count;
  using Base::kRoundSlots;
  using Base::length;
  using Base::marked;
  using Base::plain;
  using Base::plan;
  using Base::shared;
  using Base::tile;
  using Base::tile_slot;
  using typename Base::Gradient;
  using typename Base::Value;

  // Elements of one type as the outgoing gradient takes the place of the incoming one, and that in the
  // weights the values' place.
  [[nodiscard]] __device__ bool values_in_place() const {
    return (plan.values.to_float32 != 0) == (sizeof(typename I::Gradient) == 4);
  }
  [[nodiscard]] __device__ bool weights_in_place() const {
    return (plan.weights.to_float32 != 0) == (sizeof(typename I::Value) == 4);
  }
  // To element k of the tile.
  __device__ void put_value(int k, double x) const {
    if (values_in_place()) {
      shared.gradient[tile_slot() + k] = static_cast<Gradient>(x);
    } else {
      plan.values.store(begin + tile() + k, x);
    }
  }
  __device__ void put_weight(int k, double x) const {
    if (weights_in_place()) {
      shared.values[tile_slot() + k] = static_cast<Value>(x);
    } else {
      plan.weights.store(begin + tile() + k, x);
    }
  }

  // The block open before the tile, from every tile's own. Leaves the one open after the last.
  __device__ OpenBlock<PieceSums> scan(const OpenBlock<PieceSums>& own, ChunkPieces& pieces) const {
    OpenBlock<PieceSums> before;
    OpenBlock<PieceSums> whole;
    if (plain) {
      const auto widened = [](const OpenBlock<PlainSums>& block) {
        OpenBlock<PieceSums> wide{block.start, {}};
        wide.sums.incoming.high = block.sums.incoming;
        wide.sums.weight.high = block.sums.weight;
        wide.sums.total.high = block.sums.total;
        wide.sums.marks = block.sums.marks;
        return wide;
      };
      OpenBlock<PlainSums> all;
      before = widened(scan_open_blocks<I, kMean>(
          OpenBlock<PlainSums>{
              own.start, {own.sums.incoming.high, own.sums.weight.high, own.sums.total.high, own.sums.marks}},
          shared.plain_warps, all));
      whole = widened(all);
    } else {
      before = scan_open_blocks<I, kMean>(own, shared.warps, whole);
    }
    if (threadIdx.x == kWholeLane) leave_tail(pieces, whole);
    return before;
  }

  // What other chunks' sums need to know besides: a plain sum's magnitudes.
  [[nodiscard]] __device__ PieceSums sized(PieceSums sums) const {
    if (plain) {
      sums.incoming_size = shared.incoming_size;
      sums.total_size = shared.total_size;
    }
    return sums;
  }

  // Puts the gradients of the tile's elements [from, to), of the chunk's block [block_begin, block_end).
  __device__ void write(const BlockAnswer& answer, int from, int to, int block_begin, int block_end) const {
    if (plan.values.data != nullptr) {
      if constexpr (I::kWeighted) {
        const bool to_float32 = plan.values.to_float32 != 0;
        bool undecided = false;
#pragma unroll 1
        for (int k = from; k < to; ++k) {
          const double w = static_cast<double>(shared.weights[tile_slot() + k]);
          const RoundedValue found = scaled_quotient(w, answer.share, to_float32);
          undecided = undecided || !found.decided;
          put_value(k, found.value);
        }
        if (undecided) {
          double results[kGradientTile];
          walked_shares(plan.input, begin + block_begin, begin + block_end, begin + tile() + from, to - from,
                        to_float32, results);
          for (int k = from; k < to; ++k) put_value(k, results[k - from]);
        }
      } else if (values_in_place()) {
        const auto x = static_cast<Gradient>(answer.share.high);
#pragma unroll 1
        for (int k = from; k < to; ++k) shared.gradient[tile_slot() + k] = x;
      } else {
        for (int k = from; k < to; ++k) put_value(k, answer.share.high);
      }
    }
    if constexpr (kMean) {
      if (plan.weights.data != nullptr) {
#pragma unroll 1
        for (int k = from; k < to; ++k) {
          const auto y = static_cast<double>(shared.values[tile_slot() + k]);
          put_weight(k, gradient_in_weights(y, answer.mean, answer.slope));
        }
      }
    }
  }

  // Blocks of one element: w g / w, g itself, is in place already where nothing forbids it.
  __device__ void write_singles(unsigned singles) const {
    const double nan = __longlong_as_double(0x7ff8000000000000LL);
    const unsigned refused = marked(shared.refused);
    const unsigned not_finite = marked(shared.not_finite);
    if constexpr (!kMean) {
      if (values_in_place()) singles &= refused | not_finite;
    }
    while (singles != 0) {
      const int k = __ffs(static_cast<int>(singles)) - 1;
      singles &= singles - 1;
      const int slot = tile_slot() + k;
      auto g = static_cast<double>(shared.gradient[slot]);
      double in_weight = 0.0;
      bool clipped = false;
      if constexpr (kMean) {
        if (plan.bounded != 0) {
          const double fit =
              round_to(static_cast<double>(shared.values[slot]), gradient_format(plan.fit_to_float32 != 0));
          clipped = fit < plan.lower || fit > plan.upper;
        }
      }
      if ((refused >> k & 1U) != 0 || ((not_finite >> k & 1U) != 0 && !clipped)) {
        g = nan;
        in_weight = nan;
      } else if (clipped) {
        g = 0.0;
      }
      if (plan.values.data != nullptr) put_value(k, g);
      if constexpr (kMean) {
        if (plan.weights.data != nullptr) put_weight(k, in_weight);
      }
    }
  }

  // Leaves what is known once all tiles are summed: the block that is open at the chunk's end, which is also
  // its head where no block begins in the chunk.
  __device__ void leave_tail(ChunkPieces& pieces, const OpenBlock<PieceSums>& open) const {
    const bool closed = shared.closes != 0;
    pieces.units = shared.units;
    pieces.tail = sized(open.sums);
    pieces.tail_begin = closed || open.start < 0 ? length : open.start;
    shared.tail_begin = pieces.tail_begin;
    if (closed || open.start >= 0) return;
    pieces.head = sized(open.sums);
    pieces.head_end = length;
    pieces.head_closed = 0;
  }

  // Coalesced stores of what stands in shared memory.
  __device__ void store() const {
    if (plan.values.data != nullptr && values_in_place()) {
      store_array(shared.gradient, static_cast<Gradient*>(plan.values.data));
    }
    if constexpr (kMean) {
      if (plan.weights.data != nullptr && weights_in_place()) {
        store_array(shared.values, static_cast<Value*>(plan.weights.data));
      }
    }
  }
  template <class T>
  __device__ void store_array(const T* staged, T* array) const {
    const int from = shared.head_end;
    const int to = shared.tail_begin;
    if (from >= to) return;
    const int thread = static_cast<int>(threadIdx.x);
    T* out = array + begin + thread;
    const int slot = gradient_slot(thread);
    if (from == 0 && to == kGradientChunk) {
#pragma unroll
      for (int round = 0; round < kGradientTile; ++round) {
        out[round * kBlock] = canonical(staged[slot + round * kRoundSlots]);
      }
      return;
    }
#pragma unroll 4
    for (int round = 0; round < kGradientTile; ++round) {
      const int i = thread + round * kBlock;
      if (i >= from && i < to) out[round * kBlock] = canonical(staged[slot + round * kRoundSlots]);
    }
  }
};

template <class I, bool kMean>
__global__ void __launch_bounds__(kBlock, kMean ? 3 : 4)
    gradient_of_chunks(const __grid_constant__ GradientPlan<I> plan) {
  begin_kernel();
  auto& shared = *reinterpret_cast<GradientShared<I, kMean>*>(dynamic_shared());
  const std::int64_t number = blockIdx.x;
  GradientChunk<I, kMean> chunk{{plan, shared, number * kGradientChunk, plan.chunk_length(number)}};
  chunk.stage();

  const int tile = chunk.tile();
  const int count = chunk.count();
  const unsigned starts = chunk.starts();
  const int last_start = 31 - __clz(static_cast<int>(starts));  // -1: none
  OpenBlock<PieceSums> own;
  own.start = starts == 0 ? -1 : tile + last_start;
  if (starts == 0 && count == kGradientTile) {
    chunk.add_tile(own.sums);
  } else {
    chunk.add(own.sums, starts == 0 ? 0 : last_start, count, starts == 0);
  }
  const OpenBlock<PieceSums> before = chunk.scan(own, plan.pieces[number]);

  // The blocks that end in the tile, at the elements that start others or with the chunk. Blocks of one
  // inside the tile need no sums.
  const bool ends_chunk = count > 0 && tile + count == chunk.length && shared.closes != 0;
  const unsigned next = (starts >> 1) | (count > 0 && chunk.ends_after_tile() ? 1U << (count - 1) : 0U);
  const unsigned singles = starts & next;
  unsigned ends = (starts | (ends_chunk ? 1U << count : 0U)) & ~(singles << 1);
  while (ends != 0) {
    const int stop = __ffs(static_cast<int>(ends)) - 1;
    ends &= ends - 1;
    const unsigned below = starts & ((1U << stop) - 1U);
    const int place = below == 0 ? 0 : 31 - __clz(static_cast<int>(below));
    const int end = tile + stop;
    if (below == 0 && before.start >= 0 && before.start == end - 1) continue;  // a block of one
    OpenBlock<PieceSums> block = before;
    if (below != 0) block = {tile + place, {}};
    chunk.add(block.sums, place, stop, below == 0);
    if (block.start < 0) {
      ChunkPieces& pieces = plan.pieces[number];
      pieces.head = chunk.sized(block.sums);
      pieces.head_end = end;
      pieces.head_closed = 1;
      shared.head_end = end;
      continue;
    }
    const std::int64_t first = chunk.begin + block.start;
    const std::int64_t last = chunk.begin + end;
    const BlockAnswer answer = decide_block<I, kMean>(
        plan, block.sums, shared.units, end - block.start, chunk.plain,
        [&](bool total, bool single) { return walked_quotient(plan.input, first, last, total, single); });
    if (below != 0) {
      chunk.write(answer, place, stop, block.start, end);
    } else {
      shared.keep(block.start / kGradientTile, answer, end);
    }
  }
  __syncthreads();

  // The elements before the tile's first start and after its last, whose blocks other tiles have ended or
  // begun. A block of one is left to its own tile.
  const int first_start = starts == 0 ? count : __ffs(static_cast<int>(starts)) - 1;
  if (before.start >= 0 && first_start > 0) {
    const int owner = before.start / kGradientTile;
    const int end = shared.block_end[owner];
    if (end > 0) chunk.write(shared.kept(owner), 0, first_start, before.start, end);
  }
  if (starts != 0 && shared.block_end[threadIdx.x] > 0) {
    chunk.write(shared.kept(static_cast<int>(threadIdx.x)), last_start, count, tile + last_start,
                shared.block_end[threadIdx.x]);
  }
  if (singles != 0) chunk.write_singles(singles);
  __syncthreads();
  chunk.store();
}

}  // namespace isofold::cuda
