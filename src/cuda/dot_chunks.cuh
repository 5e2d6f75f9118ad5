// The first kernel of segment reductions: every element is read once. A chunk inside of one segment is
// streamed; others go through shared memory, a tile at a time, where short segments are summed by a lane,
// longer ones by eight, and the longest by the warp.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "cuda/dot_plan.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

inline constexpr int kDotBlocks = 6;       // resident on a multiprocessor: what registers are cut for
inline constexpr int kLaneSegment = 32;    // elements that one lane sums
inline constexpr int kGroupSegment = 256;  // elements that eight lanes sum

template <class T>
struct DotTypes {
  static constexpr bool kExactTerms = sizeof(T) < sizeof(double);  // products of floats are exact in doubles
  static constexpr int kTile = kExactTerms ? 1024 : 512;
  static constexpr int kPadded = kTile + kTile / 16;
};

// Every sixteenth place is skipped, so that lanes that are 16 or 32 elements apart meet in no bank.
__device__ inline int padded(int i) { return i + (i >> 4); }

// Of one warp.
template <class T>
struct DotShared {
  double terms[DotTypes<T>::kPadded];
  double lost[DotTypes<T>::kExactTerms ? 1 : DotTypes<T>::kPadded];
  CompensatedSum carry[kMostPairs];  // of the segment that goes on from the tile before
};

// How many segments end at or before `element`: the first that does not holds it. The whole warp.
__device__ inline std::int64_t segments_before(const DotPlan& plan, std::int64_t element) {
  if (element == 0) return 0;
  if (plan.offsets == nullptr) return element / plan.row_length;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  std::int64_t low = 0;
  std::int64_t high = plan.rows;
  while (low < high) {
    const std::int64_t step = (high - low + 31) / 32;
    const bool before = plan.offsets[min(low + (lane + 1) * step, high)] <= element;
    const int count = __popc(__ballot_sync(0xffffffffU, before));
    const std::int64_t base = low;
    low = min(base + count * step, high);
    if (count < 32) high = min(base + (count + 1) * step, high) - 1;
  }
  return low;
}

// Elements of 16 bytes.
template <class T>
struct DotVector {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
  uint4 words;

  __device__ double operator[](int i) const {
    const std::uint32_t all[4] = {words.x, words.y, words.z, words.w};
    if constexpr (sizeof(T) == 8) {
      return __hiloint2double(static_cast<int>(all[2 * i + 1]), static_cast<int>(all[2 * i]));
    } else if constexpr (sizeof(T) == 4) {
      return as_double(__uint_as_float(all[i]));
    } else {
      return as_double(T{static_cast<std::uint16_t>(all[i / 2] >> (16 * (i % 2)))});
    }
  }
};

__device__ inline bool on_16_bytes(const void* address) {
  return (reinterpret_cast<std::uintptr_t>(address) & 15U) == 0;
}

template <class T>
__device__ inline const T* elements(const void* array, std::int64_t first) {
  return static_cast<const T*>(array) + first;
}

// The sums of all pairs over the elements first .. first + count - 1, in every lane.
template <class T, int kPairs>
__device__ void stream_chunk(const DotPlan& plan, std::int64_t first, int count,
                             CompensatedSum (&sums)[kPairs]) {
  constexpr bool kExactTerms = DotTypes<T>::kExactTerms;
  constexpr int kCount = DotVector<T>::kCount;
  constexpr int kUnroll = kPairs == 1 ? 4 : 2;  // as many loads on their way
  const int lane = static_cast<int>(threadIdx.x) % 32;
  DotLane lanes[kPairs];
  bool risky = false;
  const auto add = [&](DotLane& into, bool product, double x, double y) {
    double lost = 0.0;
    double term = x;
    if (product) {
      if constexpr (kExactTerms) {
        term = x * y;
      } else {
        term = dot_product(x, y, &lost, &risky);
      }
    }
    into.template add<kExactTerms>(term, lost);
  };
  bool aligned = true;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    aligned = aligned && on_16_bytes(plan.pairs[p].a) && on_16_bytes(plan.pairs[p].b);
  }
  const int vectors = aligned ? count / kCount : 0;
#pragma unroll kUnroll
  for (int v = lane; v < vectors; v += 32) {
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const DotPair& pair = plan.pairs[p];
      const bool product = pair.b != nullptr;
      const DotVector<T> x{reinterpret_cast<const uint4*>(elements<T>(pair.a, first))[v]};
      DotVector<T> y = x;
      if (product && pair.b != pair.a)
        y.words = reinterpret_cast<const uint4*>(elements<T>(pair.b, first))[v];
#pragma unroll
      for (int i = 0; i < kCount; ++i) add(lanes[p], product, x[i], y[i]);
    }
  }
#pragma unroll kUnroll
  for (int i = vectors * kCount + lane; i < count; i += 32) {
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
      const DotPair& pair = plan.pairs[p];
      const bool product = pair.b != nullptr;
      const double x = as_double(elements<T>(pair.a, first)[i]);
      const double y = product ? as_double(elements<T>(pair.b, first)[i]) : 0.0;
      add(lanes[p], product, x, y);
    }
  }
  const int terms = (vectors + 31) / 32 * kCount + (count - vectors * kCount + 31) / 32;
  const double more = risky ? terms * kUnderflow : 0.0;
#pragma unroll
  for (int p = 0; p < kPairs; ++p) {
    CompensatedSum sum = lanes[p].finished(terms, kExactTerms || plan.pairs[p].b == nullptr);
    sum.error += more;
    sums[p] = sum_over_lanes(sum, 32);
  }
}

// The terms of one pair for the elements first .. first + count - 1 into shared memory. Returns whether any
// product may have underflowed.
template <class T>
__device__ bool stage_tile(const DotPair& pair, std::int64_t first, int count, DotShared<T>& shared) {
  const T* a = elements<T>(pair.a, first);
  const bool product = pair.b != nullptr;
  const T* b = product ? elements<T>(pair.b, first) : a;
  bool risky = false;
  __syncwarp();
#pragma unroll 8
  for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32) {
    const double x = as_double(a[i]);
    const double y = as_double(b[i]);
    double term = x;
    double lost = 0.0;
    if (product) {
      if constexpr (DotTypes<T>::kExactTerms) {
        term = x * y;
      } else {
        term = dot_product(x, y, &lost, &risky);
      }
    }
    shared.terms[padded(i)] = term;
    if constexpr (!DotTypes<T>::kExactTerms) shared.lost[padded(i)] = lost;
  }
  __syncwarp();
  return __any_sync(0xffffffffU, risky) != 0;
}

// The sum of the tile's elements begin .. end - 1 by each group of `width` lanes; all lanes together. Of few
// doubles it is often a tie, which a pair decides only if known to be exact: whether collecting what was lost
// has lost anything is seen then. `products`: of doubles, which are off themselves.
template <class T>
ISOFOLD_DEVICE_OUT_OF_LINE CompensatedSum group_sum(const DotShared<T>& shared, int begin, int end, int width,
                                                    bool products) {
  constexpr bool kExactTerms = DotTypes<T>::kExactTerms;
  DotLane lane;
  int terms = 0;
  bool exact = !products;
  for (int i = begin + static_cast<int>(threadIdx.x) % width; i < end; i += width) {
    const double before = lane.lost;
    const double rest = lane.add<kExactTerms>(shared.terms[padded(i)],
                                              kExactTerms ? 0.0 : shared.lost[kExactTerms ? 0 : padded(i)]);
    if constexpr (!kExactTerms) exact = exact && two_sum(before, rest).low == 0.0;
    ++terms;
  }
  CompensatedSum sum = lane.finished(terms, kExactTerms || !products);
  if (!kExactTerms && exact) sum.error *= 0.0;  // no number stays none
  return sum_over_lanes(sum, width);
}

__device__ inline CompensatedSum from_lane(const CompensatedSum& sum, int lane) {
  return {__shfl_sync(0xffffffffU, sum.high, lane), __shfl_sync(0xffffffffU, sum.low, lane),
          __shfl_sync(0xffffffffU, sum.error, lane)};
}

// Where bit number `rank` of the mask is; 32 if it has fewer.
__device__ inline int place_of_bit(std::uint32_t mask, int rank) {
  for (; rank > 0 && mask != 0; --rank) mask &= mask - 1;
  return mask != 0 ? __ffs(static_cast<int>(mask)) - 1 : 32;
}

// A tile of a chunk, as the batches of 32 segments see it.
struct DotTile {
  std::int64_t chunk;
  std::int64_t chunk_begin;
  std::int64_t begin;
  std::int64_t end;
  bool risky;
};

// One pair's sums over the segments from `segment` on that have elements in the tile, or are empty and end
// with it. Returns the first that does not end there; its part of the tile is carried on.
template <class T>
ISOFOLD_DEVICE_OUT_OF_LINE std::int64_t reduce_tile(const DotPlan& plan, int pair, const DotTile& tile,
                                                    std::int64_t segment, DotShared<T>& shared) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::uint32_t below = (1U << lane) - 1U;
  const bool products = plan.pairs[pair].b != nullptr;
  for (;;) {
    const std::int64_t mine = segment + lane;
    const bool valid = mine < plan.rows;
    const std::int64_t begin = valid ? plan.begin(mine) : plan.total;
    const std::int64_t end = valid ? plan.end(mine) : plan.total;
    const bool inside = valid && end <= tile.end;
    const bool here = valid && begin < tile.end;
    const int first = here ? static_cast<int>(max(begin, tile.begin) - tile.begin) : 0;
    const int last = here ? static_cast<int>(min(end, tile.end) - tile.begin) : 0;
    const bool whole = inside && begin >= tile.begin;

    const bool by_lane = whole && last - first <= kLaneSegment;
    CompensatedSum sum = group_sum<T>(shared, first, by_lane ? last : first, 1, products);

    const bool by_group = whole && !by_lane && last - first <= kGroupSegment;
    const std::uint32_t grouped = __ballot_sync(0xffffffffU, by_group);
    for (int done = 0; done < __popc(grouped); done += 4) {
      const int owner = place_of_bit(grouped, done + lane / 8);
      const int group_first = __shfl_sync(0xffffffffU, first, owner % 32);
      const int group_last = __shfl_sync(0xffffffffU, last, owner % 32);
      const CompensatedSum found =
          group_sum<T>(shared, group_first, owner < 32 ? group_last : group_first, 8, products);
      const int rank = __popc(grouped & below) - done;
      const CompensatedSum own = from_lane(found, 8 * (rank & 3));
      if (by_group && rank >= 0 && rank < 4) sum = own;
    }

    std::uint32_t rest = __ballot_sync(0xffffffffU, here && last > first && !by_lane && !by_group);
    for (; rest != 0; rest &= rest - 1) {
      const int owner = __ffs(static_cast<int>(rest)) - 1;
      const int warp_first = __shfl_sync(0xffffffffU, first, owner);
      const int warp_last = __shfl_sync(0xffffffffU, last, owner);
      const CompensatedSum found = group_sum<T>(shared, warp_first, warp_last, 32, products);
      if (lane == owner) sum = found;
    }

    if (tile.risky) sum.error += (last - first) * kUnderflow;
    if (here && begin < tile.begin && begin < tile.end && tile.begin > tile.chunk_begin) {
      sum = shared.carry[pair] + sum;
    }
    __syncwarp();
    if (inside && begin < tile.chunk_begin) {
      plan.heads[tile.chunk * plan.pair_count + pair] = sum;
    } else if (inside) {
      finish_segment(plan, pair, mine, sum);
    } else if (here) {
      shared.carry[pair] = sum;
    }
    __syncwarp();
    const int ended = __popc(__ballot_sync(0xffffffffU, inside));
    segment += ended;
    if (ended < 32) return segment;
  }
}

// Waits for the kernel that judges offsets. Until then they may be anything: what is read of the arrays are
// chunks and tiles, wherever segments begin or end.
__device__ inline bool refused_offsets(const DotPlan& plan) {
  wait_for_kernel_before();
  return plan.offsets != nullptr && *plan.faulty_offsets != 0;
}

template <class T, int kPairs>
__global__ void __launch_bounds__(32 * kDotWarps, kPairs < 3 ? kDotBlocks : kDotBlocks - 1)
    reduce_chunks(const __grid_constant__ DotPlan plan) {
  // The kernel that clears or judges has waited for the one before it, and so for the inputs: they are read
  // while it ends, and it is waited for before anything that it writes is looked at or anything is written.
  if (plan.prepared != 0) wait_for_kernel_before();
  let_next_kernel_start();
  auto* all_shared = reinterpret_cast<DotShared<T>*>(dynamic_shared());
  DotShared<T>& shared = all_shared[threadIdx.x / 32];
  const std::int64_t chunk = static_cast<std::int64_t>(blockIdx.x) * kDotWarps + threadIdx.x / 32;
  if (chunk >= plan.chunks) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t chunk_begin = chunk * plan.chunk;
  const std::int64_t chunk_end = min(chunk_begin + plan.chunk, plan.total);
  std::int64_t segment = segments_before(plan, chunk_begin);
  DotTile tile{chunk, chunk_begin, chunk_begin, chunk_end, false};
  std::int64_t open = -1;
  if (segment < plan.rows && plan.begin(segment) <= chunk_begin && plan.end(segment) >= chunk_end) {
    CompensatedSum sums[kPairs];
    stream_chunk<T, kPairs>(plan, chunk_begin, static_cast<int>(chunk_end - chunk_begin), sums);
    if (refused_offsets(plan)) return;
    const bool begins = plan.begin(segment) == chunk_begin;
    const bool ends = plan.end(segment) == chunk_end;
    if (begins && !ends) open = segment;
    if (lane == 0) {
#pragma unroll
      for (int p = 0; p < kPairs; ++p) {
        const std::int64_t place = chunk * kPairs + p;
        if (begins && ends) {
          finish_segment(plan, p, segment, sums[p]);
        } else {
          (begins ? plan.tails : plan.heads)[place] = sums[p];
        }
      }
    }
    if (ends) {
      // Empty segments behind it.
      tile.begin = chunk_end;
      for (int p = 0; p < kPairs; ++p) reduce_tile<T>(plan, p, tile, segment + 1, shared);
    }
  } else {
    for (tile.begin = chunk_begin; tile.begin < chunk_end; tile.begin += DotTypes<T>::kTile) {
      tile.end = min(tile.begin + DotTypes<T>::kTile, chunk_end);
      std::int64_t next = segment;
      for (int p = 0; p < kPairs; ++p) {
        tile.risky =
            stage_tile<T>(plan.pairs[p], tile.begin, static_cast<int>(tile.end - tile.begin), shared);
        if (refused_offsets(plan)) return;
        next = reduce_tile<T>(plan, p, tile, segment, shared);
      }
      segment = next;
    }
    if (segment < plan.rows && plan.begin(segment) < chunk_end) {
      const bool begins = plan.begin(segment) >= chunk_begin;
      if (begins) open = segment;
      if (lane < kPairs) {
        (begins ? plan.tails : plan.heads)[chunk * kPairs + lane] = shared.carry[lane];
      }
    }
  }
  if (lane == 0) plan.tail_segment[chunk] = open;
}

}  // namespace isofold::cuda
