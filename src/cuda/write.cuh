// The fit of a chunk from its final vertices: every element takes the slope of the edge above it, rounded
// once.
#pragma once

#include <cstdint>

#include "cuda/chunk.cuh"
#include "cuda/plan.cuh"

namespace isofold::cuda {

__device__ inline double clipped(const Output& output, double value) {
  return value < output.lower ? output.lower : (value > output.upper ? output.upper : value);
}

__device__ inline void store_fit(const Output& output, std::int64_t at, double value) {
  if (output.to_float32 != 0) {
    static_cast<float*>(output.fit)[at] = static_cast<float>(value);
  } else {
    static_cast<double*>(output.fit)[at] = value;
  }
}

// Calls `use` with the fit's memory, by its type.
template <class Use>
__device__ void with_fit(const Output& output, Use use) {
  if (output.fit == nullptr) return;
  if (output.to_float32 != 0) {
    use(static_cast<float*>(output.fit));
  } else {
    use(static_cast<double*>(output.fit));
  }
}

// Which edge an element lies under, and that edge's value.
template <class Count>
struct EdgeLookup {
  const std::uint32_t* mask;  // a word a tile: where edges start
  const Count* before;        // edges that start before the tile
  const double* values;       // by how many edges have started

  __device__ double at(int i) const {
    return values[before[i / kTile] + __popc(mask[i / kTile] & (~0U >> (31 - i % kTile)))];
  }
};

template <class T>
struct alignas(4 * sizeof(T)) Four {
  T of[4];
};

template <class T>
__device__ T from_lane_above(T x) {
  if constexpr (sizeof(T) < 4) return static_cast<T>(__shfl_down_sync(0xffffffffU, static_cast<int>(x), 1));
  return __shfl_down_sync(0xffffffffU, x, 1);
}

// Writes element after element what `four_at(i, four)` says of four of one tile, four a thread. Where memory
// is not aligned to fours, a lane shifts its four and the next lane's, the last lane's being there for that
// alone.
template <int Size, class T, class FourAt>
__device__ void write_fours(T* to, int length, FourAt four_at) {
  const int rank = Team<Size>::rank();
  const auto skew = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % sizeof(Four<T>) / sizeof(T));
  const auto at = [&](int i) {
    Four<T> four;
    four_at(i / 4 * 4, four.of);
    return i % 4 < 2 ? (i % 4 == 0 ? four.of[0] : four.of[1]) : (i % 4 == 2 ? four.of[2] : four.of[3]);
  };
  if (skew == 0) {
#pragma unroll 2
    for (int i = 4 * rank; i + 4 <= length; i += 4 * Size) {
      Four<T> four;
      four_at(i, four.of);
      *reinterpret_cast<Four<T>*>(to + i) = four;
    }
    if (const int i = length / 4 * 4 + rank; i < length) to[i] = at(i);
    return;
  }
  const int lead = 4 - skew;  // elements before the first aligned four
  if (rank < min(lead, length)) to[rank] = at(rank);
  constexpr int kWindow = 4 * 31;
  const int lane = rank % 32;
#pragma unroll 1
  for (int first = rank / 32 * kWindow; first + lead < length; first += Size / 32 * kWindow) {
    const int i = first + 4 * lane;
    Four<T> own{};
    if (i < length) four_at(i, own.of);
    const T next[3] = {from_lane_above(own.of[0]), from_lane_above(own.of[1]), from_lane_above(own.of[2])};
    Four<T> out;
    if (lead == 1) {
      out = {{own.of[1], own.of[2], own.of[3], next[0]}};
    } else if (lead == 2) {
      out = {{own.of[2], own.of[3], next[0], next[1]}};
    } else {
      out = {{own.of[3], next[0], next[1], next[2]}};
    }
    const int begin = i + lead;
    if (lane == 31 || begin >= length) continue;
    if (begin + 4 <= length) {
      *reinterpret_cast<Four<T>*>(to + begin) = out;
    } else {
#pragma unroll
      for (int j = 0; j < 3; ++j) {
        if (begin + j < length) to[begin + j] = out.of[j];
      }
    }
  }
}

// Writes a chunk whose elements need not be looked at: its fit and its block starts. `base`: its first
// element in the batch.
template <int Size, class Count>
__device__ void write_edges(const EdgeLookup<Count>& edges, const Output& output, std::int64_t base,
                            int length) {
  const auto write_fit = [&](auto* fit) {
    using T = std::remove_pointer_t<decltype(fit)>;
    write_fours<Size>(fit + base, length, [&](int i, T(&four)[4]) {
      if (edges.mask[i / kTile] == 0) {  // most often
        const auto value = static_cast<T>(edges.values[edges.before[i / kTile]]);
#pragma unroll
        for (int j = 0; j < 4; ++j) four[j] = value;
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) four[j] = static_cast<T>(edges.at(i + j));
      }
    });
  };
  with_fit(output, write_fit);
  if (output.block_starts != nullptr) {
    write_fours<Size>(output.block_starts + base, length, [&](int i, std::uint8_t(&four)[4]) {
      const std::uint32_t bits = edges.mask[i / kTile] >> (i % kTile);
#pragma unroll
      for (int j = 0; j < 4; ++j) four[j] = static_cast<std::uint8_t>(bits >> j & 1U);
    });
  }
}

// The slope of the edge between points a and b of a chunk, before sign and bounds.
template <class E, int Size>
__device__ double edge_value(const Chunk<E, Size>& chunk, const Output& output, int a, int b) {
  if (b == a + 1) return round_to(chunk.value(a), output.format) + 0.0;
  if constexpr (!E::kWeighted) {
    if (chunk.exact) {
      return exact_doubles_mean(chunk.exact_total(b) - chunk.exact_total(a), b - a, output.to_float32 != 0);
    }
  }
  const Point from = chunk.point(a);
  const Point to = chunk.point(b);
  const CertifiedSum total{to.total.value - from.total.value, from.total.error + to.total.error};
  const CertifiedSum weight{to.weight.value - from.weight.value, from.weight.error + to.weight.error};
  return certified_mean(chunk.row, chunk.origin + a, chunk.origin + b, total, weight, output.format);
}

// The same between two vertices of one tile, from the elements between them alone: those before them may
// have been overwritten.
template <class E, int Size>
__device__ double inner_edge_value(const Chunk<E, Size>& chunk, const Output& output, int a, int b) {
  if (b == a + 1 || (!E::kWeighted && chunk.exact)) return edge_value(chunk, output, a, b);
  CertifiedSum total{{}, chunk.error};
  CertifiedSum weight{{static_cast<double>(b - a), 0.0}, chunk.weight_error};
  if constexpr (E::kWeighted) weight.value = {};
  for (int k = a; k < b; ++k) add_element<E>(chunk, k, total.value, weight.value);
  return certified_mean(chunk.row, chunk.origin + a, chunk.origin + b, total, weight, output.format);
}

// Puts the fit of a chunk in shared memory, in the place of its values or totals; writes it and the block
// starts where that does not do. `base`: its first element in the batch.
// `incoming`: the value before its first vertex. `outgoing`: that after its last one, unless the chunk's end
// is itself the next vertex (`ends_row`). Overwrites the staged values.
template <class E, int Size>
__device__ void fit_chunk(const Chunk<E, Size>& chunk, const Output& output, std::int64_t base,
                          double incoming, double outgoing, bool ends_row, double* edge_values) {
  using T = Team<Size>;
  const int tile = T::rank();
  const int begin = tile * kTile;
  const int end = min(begin + kTile, chunk.length);
  auto* storage = chunk.storage;
  const std::uint32_t mask = begin < chunk.length ? chunk.mask(tile) : 0;

  if (output.block_starts != nullptr) {
    T::sync();
    for (int i = tile; i < chunk.length; i += Size) {
      output.block_starts[base + i] = static_cast<std::uint8_t>(chunk.mask(i / kTile) >> (i % kTile) & 1U);
    }
  }
  if (output.fit == nullptr) return;

  // Which tiles hold vertices.
  std::uint32_t occupied;
  const unsigned ballot = __ballot_sync(T::mask(), mask != 0);
  if constexpr (Size <= 32) {
    occupied = (ballot & T::mask()) >> (T::lane() / Size * Size);
  } else {
    if (T::lane() == 0) storage->occupied[T::warp()] = ballot;
    __syncthreads();
    occupied = 0;
  }
  const auto next_occupied = [&](int t) {  // the first one after t, or -1
    if constexpr (Size <= 32) {
      const std::uint32_t above = t >= 31 ? 0U : occupied & (~0U << (t + 1));
      return above == 0 ? -1 : __ffs(static_cast<int>(above)) - 1;
    } else {
      if (t + 1 >= Size) return -1;
      int word = (t + 1) / 32;
      std::uint32_t bits = storage->occupied[word] & (~0U << ((t + 1) % 32));
      while (bits == 0) {
        if (++word == Size / 32) return -1;
        bits = storage->occupied[word];
      }
      return word * 32 + __ffs(static_cast<int>(bits)) - 1;
    }
  };
  const auto previous_occupied = [&](int t) {  // the last one before t, or -1
    if constexpr (Size <= 32) {
      const std::uint32_t below = occupied & ((1U << t) - 1U);
      return below == 0 ? -1 : 31 - __clz(static_cast<int>(below));
    } else {
      int word = t / 32;
      std::uint32_t bits = storage->occupied[word] & ((1U << (t % 32)) - 1U);
      while (bits == 0) {
        if (--word < 0) return -1;
        bits = storage->occupied[word];
      }
      return word * 32 + 31 - __clz(static_cast<int>(bits));
    }
  };

  double last_value = outgoing;
  if (mask != 0) {
    const int last = begin + 31 - __clz(static_cast<int>(mask));
    const int next = next_occupied(tile);
    if (next >= 0) {
      last_value =
          edge_value(chunk, output, last, next * kTile + __ffs(static_cast<int>(chunk.mask(next))) - 1);
    } else if (ends_row) {
      last_value = edge_value(chunk, output, last, chunk.length);
    }
    edge_values[T::index() * Size + tile] = last_value;
  }
  T::sync();
  if (begin < chunk.length) {
    const int previous = previous_occupied(tile);
    double current = previous >= 0 ? edge_values[T::index() * Size + previous] : incoming;
    const double sign = chunk.row.sign;
    double shown = clipped(output, sign * current + 0.0);
    int i = begin;
    std::uint32_t left = mask;
    while (i < end) {
      const int stop = left != 0 ? begin + __ffs(static_cast<int>(left)) - 1 : end;
      for (; i < stop; ++i) {
        if (output.to_input_type == 0) {
          store_fit(output, base + i, shown);
        } else if (E::kWeighted || !chunk.exact) {
          chunk.values()[staged(i)] = static_cast<typename E::Value>(shown);
        } else {
          storage->region().totals[staged(i)] = shown;
        }
      }
      if (left == 0) break;
      left &= left - 1;
      current = left != 0 ? inner_edge_value(chunk, output, i, begin + __ffs(static_cast<int>(left)) - 1)
                          : last_value;
      shown = clipped(output, sign * current + 0.0);
    }
  }
}

// The same, and writes it.
template <class E, int Size>
__device__ void write_chunk(const Chunk<E, Size>& chunk, const Output& output, std::int64_t base,
                            double incoming, double outgoing, bool ends_row, double* edge_values) {
  fit_chunk(chunk, output, base, incoming, outgoing, ends_row, edge_values);
  if (output.fit == nullptr || output.to_input_type == 0) return;
  const int tile = Team<Size>::rank();
  auto* storage = chunk.storage;
  Team<Size>::sync();
  auto* fit = static_cast<typename E::Value*>(output.fit) + base;
  if (E::kWeighted || !chunk.exact) {
#pragma unroll 8
    for (int i = tile; i < chunk.length; i += Size) fit[i] = chunk.values()[staged(i)];
  } else {
#pragma unroll 8
    for (int i = tile; i < chunk.length; i += Size) {
      fit[i] = static_cast<typename E::Value>(storage->region().totals[staged(i)]);
    }
  }
}

// A row that holds what is not allowed comes out NaN, one block.
template <int Size>
__device__ void write_refused(const Output& output, std::int64_t base, int length, bool row_start) {
  for (int i = Team<Size>::rank(); i < length; i += Size) {
    if (output.fit != nullptr) store_fit(output, base + i, __longlong_as_double(0x7ff8000000000000LL));
    if (output.block_starts != nullptr) output.block_starts[base + i] = row_start && i == 0;
  }
}

}  // namespace isofold::cuda
