// The last kernel for long rows: every chunk's fit from the vertices that the root has left it.
#pragma once

#include <cstdint>

#include "cuda/solve.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

template <class E>
struct WriteShared {
  ChunkStorage<E, kBlock> storage;
  double edge_values[kBlock];
};

// What a chunk takes whose elements need not be staged.
struct ListedShared {
  std::uint32_t mask[kBlock];
  double edge_values[kBlock + 1];
  int before[kBlock];  // vertices before each tile
  TeamScratch team;
};

// The last live chunk before one, and the value that leaves it.
template <class E>
__device__ double incoming_value(const Plan<E>& plan, const LongRowPlace& place, std::int64_t number) {
  if (number == 0) return 0.0;
  const std::int64_t group = node_id(place, 1, number / kFanIn);
  const auto bit = static_cast<int>(number % kFanIn);
  const LiveWord below = live_below(plan.live[group], bit);
  const std::int64_t previous = below != 0 ? number - bit + highest_live(below) : plan.live_before[group];
  return plan.chunks[place.row.first_chunk + previous].outgoing;
}

// A chunk whose vertices are listed, or that has none: its elements are not read.
template <class E>
__device__ void write_listed(const Plan<E>& plan, const LongRowPlace& place, const Slot<E>& slot,
                             const ChunkRecord& record, const VertexRange& range, bool alive,
                             std::int64_t origin, int length, double incoming, ListedShared& shared,
                             const Team<kBlock>& team) {
  const Output& output = plan.output;
  const std::int64_t base = place.row.begin + origin;
  const int thread = static_cast<int>(threadIdx.x);
  auto* mask = shared.mask;
  const double sign = plan.elements.sign;
  mask[thread] = 0;
  const int count = alive ? range.entries() : 0;
  if (thread == 0) shared.edge_values[0] = clipped(output, sign * incoming + 0.0);
  __syncthreads();
  if (thread < count) {
    const int entry = range.first_entry + thread;
    const int a = static_cast<int>(slot.places[entry]);
    atomicOr(&mask[a / kTile], 1U << (a % kTile));
    double value = record.outgoing;
    if (thread + 1 < count) {
      const int b = static_cast<int>(slot.places[entry + 1]);
      if (record.exact != 0) {
        value = exact_doubles_mean(slot.total_high[entry + 1] - slot.total_high[entry], b - a,
                                   output.to_float32 != 0);
      } else {
        const DoubleDouble total = DoubleDouble{slot.total_high[entry + 1], slot.total_low[entry + 1]} -
                                   DoubleDouble{slot.total_high[entry], slot.total_low[entry]};
        CertifiedSum weight{{static_cast<double>(b - a), 0.0}, 0.0};
        if constexpr (E::kWeighted) {
          weight = {DoubleDouble{slot.weight_high[entry + 1], slot.weight_low[entry + 1]} -
                        DoubleDouble{slot.weight_high[entry], slot.weight_low[entry]},
                    2 * record.weight_error};
        }
        value = certified_mean(plan.elements.from(place.row.begin), origin + a, origin + b,
                               {total, 2 * record.error}, weight, output.format);
      }
    }
    shared.edge_values[thread + 1] = clipped(output, sign * value + 0.0);
  }
  __syncthreads();
  const auto places = team.scan(__popc(mask[thread]));
  int* before = shared.before;
  before[thread] = places.before;
  __syncthreads();
  write_edges<kBlock>(EdgeLookup<int>{mask, before, shared.edge_values}, output, base, length);
}

// A chunk whose values never fall: between the first and the last vertex that the root has left, they are
// their own fit.
template <class E>
__device__ void write_sorted(const Plan<E>& plan, std::int64_t base, const Slot<E>& slot,
                             const ChunkRecord& record, const VertexRange& range, int length,
                             double incoming) {
  const Output& output = plan.output;
  const double sign = plan.elements.sign;
  const double before = clipped(output, sign * incoming + 0.0);
  const double after = clipped(output, sign * record.outgoing + 0.0);
  const E row = plan.elements.from(base);
  const auto write_fit = [&](auto* fit) {
    using T = std::remove_pointer_t<decltype(fit)>;
    write_fours<kBlock>(fit + base, length, [&](int i, T(&four)[4]) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int at = min(i + j, length - 1);
        double value = at < range.first ? before : after;
        if (at >= range.first && at < range.last) {
          value = clipped(output, sign * (round_to(row.value(at), output.format) + 0.0) + 0.0);
        }
        four[j] = static_cast<T>(value);
      }
    });
  };
  with_fit(output, write_fit);
  if (output.block_starts != nullptr) {
    write_fours<kBlock>(output.block_starts + base, length, [&](int i, std::uint8_t(&four)[4]) {
      const std::uint32_t bits = slot.places[i / kTile] >> (i % kTile);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        four[j] = i + j >= range.first && i + j <= range.last ? static_cast<std::uint8_t>(bits >> j & 1U) : 0;
      }
    });
  }
}

// Where a chunk's fit goes and what it takes from its row.
template <class E>
struct ChunkFit {
  LongRowPlace place;
  std::int64_t number;
  std::int64_t base;  // its first element in the batch
  int length;
  ChunkRecord record;
  VertexRange range;
  bool alive;

  __device__ bool find(const Plan<E>& plan, std::int64_t id) {
    if (!find_chunk(plan, id, place)) return false;
    number = id - place.row.first_chunk;
    base = place.row.begin + number * kLongChunk;
    const std::int64_t left = place.row.length - number * kLongChunk;
    length = static_cast<int>(left < kLongChunk ? left : kLongChunk);
    record = plan.chunks[id];
    range = plan.ranges[id];
    alive = is_live(plan.live[node_id(place, 1, number / kFanIn)], static_cast<int>(number % kFanIn));
    return true;
  }
  // Whether the values between its vertices must be summed again.
  __device__ bool dense() const { return alive && record.count == 0 && record.sorted == 0; }
};

// Blocks of the light kernel that a multiprocessor is to hold at once: Turing's has 1,024 threads in all.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
inline constexpr int kLightResident = 4;
#else
inline constexpr int kLightResident = 6;
#endif

// Writes a chunk, unless it is dense. Returns whether there is such a chunk. The whole block.
template <class E>
__device__ bool write_chunk_of_row(const Plan<E>& plan, std::int64_t id, ListedShared& shared,
                                   const Team<kBlock>& team) {
  ChunkFit<E> chunk;
  if (!chunk.find(plan, id)) return false;
  if (plan.refused[chunk.place.number] != 0) {
    write_refused<kBlock>(plan.output, chunk.base, chunk.length, chunk.number == 0);
    return true;
  }
  if (chunk.dense()) return true;
  const double incoming = incoming_value(plan, chunk.place, chunk.number);
  const Slot<E>& slot = plan.slots[id];
  if (chunk.alive && chunk.record.sorted != 0) {
    write_sorted(plan, chunk.base, slot, chunk.record, chunk.range, chunk.length, incoming);
  } else {
    write_listed(plan, chunk.place, slot, chunk.record, chunk.range, chunk.alive, chunk.number * kLongChunk,
                 chunk.length, incoming, shared, team);
  }
  return true;
}

// All chunks but the dense ones: a block each.
template <class E>
__global__ void __launch_bounds__(kBlock, kLightResident) write_chunks(const Plan<E> plan) {
  begin_kernel();
  __shared__ ListedShared shared;
  write_chunk_of_row(plan, blockIdx.x, shared, Team<kBlock>{&shared.team});
}

// The same of ragged rows, which have fewer chunks than `plan.chunks_bound`: some blocks take them all.
template <class E>
__global__ void __launch_bounds__(kBlock, kLightResident)
    write_ragged_chunks(const Plan<E> plan, int blocks) {
  begin_kernel();
  __shared__ ListedShared shared;
#pragma unroll 1
  for (std::int64_t id = blockIdx.x; id < plan.chunks_bound; id += blocks) {
    if (!write_chunk_of_row(plan, id, shared, Team<kBlock>{&shared.team})) return;
    __syncthreads();  // the next chunk takes the memory of this one
  }
}

// The dense chunks, from their elements.
template <class E>
__global__ void __launch_bounds__(kBlock, kResident<WriteShared<E>>)
    write_dense_chunks(const Plan<E> plan, int blocks) {
  begin_kernel();
  auto& shared = *reinterpret_cast<WriteShared<E>*>(dynamic_shared());
  const int tile = static_cast<int>(threadIdx.x);
  const int count = plan.work->dense_chunks;
  for (int i = static_cast<int>(blockIdx.x); i < count; i += blocks) {
    const std::int64_t id = plan.dense_chunks[i];
    ChunkFit<E> fit;
    fit.find(plan, id);
    if (plan.refused[fit.place.number] != 0 || !fit.dense()) continue;
    const ChunkRecord& record = fit.record;
    const Slot<E>& slot = plan.slots[id];
    Chunk<E, kBlock> chunk = long_chunk(plan, fit.place, fit.number, &shared.storage);
    __syncthreads();
    stage(chunk);
    __syncthreads();
    auto& storage = shared.storage;
    bool exact = false;
    if constexpr (!E::kWeighted) exact = record.exact != 0;
    if (exact) {
      keep_totals(chunk, slot.total_high[tile], plan.sums[0][id].total.high);
    } else {
      storage.own_pairs().total_high[tile] = slot.total_high[tile];
      storage.own_pairs().total_low[tile] = slot.total_low[tile];
      if constexpr (E::kWeighted) {
        storage.own_pairs().weight_high[tile] = slot.weight_high[tile];
        storage.own_pairs().weight_low[tile] = slot.weight_low[tile];
      }
      chunk.error = record.error;
      chunk.weight_error = record.weight_error;
    }
    std::uint32_t mask = slot.places[tile];
    const int low = fit.range.first - tile * kTile;
    const int high = fit.range.last - tile * kTile;
    if (low >= kTile || high < 0) {
      mask = 0;
    } else {
      if (low > 0) mask &= ~0U << low;
      if (high < kTile - 1) mask &= (2U << high) - 1U;
    }
    storage.mask[tile] = mask;
    __syncthreads();
    write_chunk(chunk, plan.output, fit.base, incoming_value(plan, fit.place, fit.number), record.outgoing,
                false, shared.edge_values);
  }
}

}  // namespace isofold::cuda
