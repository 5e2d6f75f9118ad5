// The last kernel for long rows: every chunk's fit from the vertices that the root has left it.
#pragma once

#include <cstdint>

#include "cuda/solve.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

template <class E>
struct WriteShared {
  ChunkStorage<E, kBlock> storage;
  double edge_values[kBlock + 1];
  int before[kBlock];  // vertices before each tile
};

// The last live chunk before one, and the value that leaves it.
template <class E>
__device__ double incoming_value(const Plan<E>& plan, const LongRowPlace& place, std::int64_t number) {
  if (number == 0) return 0.0;
  const std::int64_t group = node_id(place, 1, number / kFanIn);
  const std::uint32_t below = plan.live[group] & ((1U << (number % 32)) - 1U);
  const std::int64_t previous =
      below != 0 ? number / 32 * 32 + 31 - __clz(static_cast<int>(below)) : plan.live_before[group];
  return plan.chunks[place.row.first_chunk + previous].outgoing;
}

// A chunk whose vertices are listed, or that has none: its elements are not read.
template <class E>
__device__ void write_listed(const Plan<E>& plan, const LongRowPlace& place, const Slot<E>& slot,
                             const ChunkRecord& record, std::int64_t origin, int length, bool alive,
                             double incoming, WriteShared<E>& shared, const Team<kBlock>& team) {
  const Output& output = plan.output;
  const std::int64_t base = place.row.begin + origin;
  const int thread = static_cast<int>(threadIdx.x);
  auto* mask = shared.storage.mask;
  const double sign = plan.elements.sign;
  mask[thread] = 0;
  const int count = alive ? record.last_ordinal - record.first_ordinal + 1 : 0;
  if (thread == 0) shared.edge_values[0] = clipped(output, sign * incoming + 0.0);
  __syncthreads();
  if (thread < count) {
    const int entry = record.first_ordinal + thread;
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

template <class E>
__global__ void __launch_bounds__(kBlock, kResident<WriteShared<E>>) write_chunks(const Plan<E> plan) {
  unsigned char* memory = dynamic_shared();
  auto& shared = *reinterpret_cast<WriteShared<E>*>(memory);
  const Team<kBlock> team{&shared.storage.scratch};
  const std::int64_t id = blockIdx.x;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t number = id - place.row.first_chunk;
  Chunk<E, kBlock> chunk = long_chunk(plan, place, number, &shared.storage);
  const std::int64_t base = place.row.begin + chunk.origin;
  if (plan.refused[place.number] != 0) {
    write_refused<kBlock>(plan.output, base, chunk.length, number == 0);
    return;
  }
  const ChunkRecord record = plan.chunks[id];
  const Slot<E>& slot = plan.slots[id];
  const bool alive = (plan.live[node_id(place, 1, number / kFanIn)] >> (number % 32) & 1U) != 0;
  const double incoming = incoming_value(plan, place, number);
  if (!alive || record.count > 0) {
    write_listed(plan, place, slot, record, chunk.origin, chunk.length, alive, incoming, shared, team);
    return;
  }
  stage(chunk);
  __syncthreads();
  const int tile = static_cast<int>(threadIdx.x);
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
  const int low = record.first - tile * kTile;
  const int high = record.last - tile * kTile;
  if (low >= kTile || high < 0) {
    mask = 0;
  } else {
    if (low > 0) mask &= ~0U << low;
    if (high < kTile - 1) mask &= (2U << high) - 1U;
  }
  storage.mask[tile] = mask;
  __syncthreads();
  write_chunk(chunk, plan.output, base, incoming, record.outgoing, false, shared.edge_values);
}

}  // namespace isofold::cuda
