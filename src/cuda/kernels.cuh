// The kernels of isotonic regression: short rows whole; long rows in three steps (chunks and their tree, the
// edges between chunks, the fit).
#pragma once

#include <cstdint>

#include "cuda/hull.cuh"
#include "cuda/plan.cuh"
#include "cuda/tree.cuh"
#include "cuda/write.cuh"

namespace isofold::cuda {

// Blocks that shall fit on a multiprocessor at once, as shared memory allows.
template <class E, int Size>
inline constexpr int kResident =
    E::kWeighted && sizeof(typename E::Value) == 8
        ? 1
        : (Size < kBlock || E::kWeighted || sizeof(typename E::Value) == 8 ? 2 : 3);

template <class E, int Size>
struct RowShared {
  ChunkStorage<E, Size> storage;
  std::conditional_t<Size >= 32, HullScratch<E, Size >= 32 ? Size : 32>, char> hull;
  double edge_values[kBlock];
  unsigned char state[kBlock / Size];
};

template <class E>
struct LongShared {
  union {
    struct {
      ChunkStorage<E, kBlock> storage;
      HullScratch<E, kBlock> hull;
    };
    NodeScratch<E> node;
  };
  TeamScratch team;
  SharedNode climbing;
};

// The hull of a chunk, staged before, or a single point if it may not be fitted.
template <class E, int Size>
__device__ ChunkFacts solve_staged_chunk(Chunk<E, Size>& chunk, const Team<Size>& team,
                                         HullScratch<E, Size>* scratch) {
  const ChunkFacts facts = sum_tiles(chunk, team);
  if (facts.allowed) {
    chunk_hull(chunk, facts, team, scratch);
  } else {
    chunk.mask(Team<Size>::rank()) = Team<Size>::rank() == 0 ? 1U : 0U;
    Team<Size>::sync();
  }
  return facts;
}

template <class E, int Size>
__device__ ChunkFacts solve_chunk(Chunk<E, Size>& chunk, const Team<Size>& team,
                                  HullScratch<E, Size>* scratch) {
  stage(chunk);
  Team<Size>::sync();
  return solve_staged_chunk(chunk, team, scratch);
}

// Rows of equal length stand one after the other: the block carries them in and out together, so that
// neighbouring threads touch neighbouring elements however short the rows are.
template <class E, int Size>
__device__ void fit_short_rectangle(const Plan<E>& plan, RowShared<E, Size>& shared, const Team<Size>& team) {
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * Team<Size>::kTeams;
  const std::int64_t rows_left = plan.rows - first_row;
  const int rows = static_cast<int>(rows_left < Team<Size>::kTeams ? rows_left : Team<Size>::kTeams);
  const int length = static_cast<int>(plan.row_length);
  const int count = rows * length;
  const std::int64_t base = first_row * length;
  const float inverse = 1.0F / static_cast<float>(length);
  // element / length, exact for such small numbers: the product is off by less than half of 1 / length.
  const auto row_of = [&](int element) {
    return static_cast<int>((static_cast<float>(element) + 0.5F) * inverse);
  };
  auto& storage = shared.storage;
#pragma unroll 4
  for (int e = static_cast<int>(threadIdx.x); e < count; e += kBlock) {
    const int row = row_of(e);
    const int slot = staged(e - row * length);
    __pipeline_memcpy_async(storage.regions[row].values + slot, plan.elements.values + base + e,
                            sizeof(typename E::Value));
    if constexpr (E::kWeighted) {
      __pipeline_memcpy_async(storage.regions[row].weights + slot, plan.elements.weights + base + e,
                              sizeof(typename E::Weight));
    }
  }
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();

  const int own = Team<Size>::index();
  const std::int64_t begin = base + static_cast<std::int64_t>(own) * length;
  bool refused = false;
  bool totals = false;  // the fit is where the running totals were
  if (own < rows) {
    Chunk<E, Size> chunk{&storage, plan.elements.from(begin), 0, length};
    HullScratch<E, Size>* scratch = nullptr;
    if constexpr (Size >= 32) scratch = &shared.hull;
    const ChunkFacts facts = solve_staged_chunk<E, Size>(chunk, team, scratch);
    refused = !facts.allowed;
    if (refused) {
      write_refused<Size>(plan.output, begin, length, true);
    } else {
      fit_chunk(chunk, plan.output, begin, 0.0, 0.0, true, shared.edge_values);
    }
    totals = chunk.exact;
  }
  if (plan.output.fit == nullptr || plan.output.to_input_type == 0) return;
  if (Team<Size>::rank() == 0) shared.state[own] = refused ? 2 : (totals ? 1 : 0);
  __syncthreads();
  auto* fit = static_cast<typename E::Value*>(plan.output.fit) + base;
#pragma unroll 4
  for (int e = static_cast<int>(threadIdx.x); e < count; e += kBlock) {
    const int row = row_of(e);
    const int slot = staged(e - row * length);
    const int state = shared.state[row];
    if (state == 0) fit[e] = storage.regions[row].values[slot];
    if constexpr (!E::kWeighted) {
      if (state == 1) fit[e] = static_cast<typename E::Value>(storage.regions[row].totals[slot]);
    }
  }
}

// Rows of at most 32 * Size elements, a team each, from running totals to fit. `row_class`: which list of
// row numbers, where rows are ragged.
template <class E, int Size>
__global__ void __launch_bounds__(kBlock, kResident<E, Size>)
    fit_short_rows(const Plan<E> plan, int row_class) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<RowShared<E, Size>*>(memory);
  const Team<Size> team{&shared.storage.scratch};
  if (Size < kBlock && plan.offsets == nullptr) {
    fit_short_rectangle<E, Size>(plan, shared, team);
    return;
  }
  std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * Team<Size>::kTeams + Team<Size>::index();
  std::int64_t begin;
  std::int64_t length;
  if (plan.offsets == nullptr) {
    if (number >= plan.rows) return;
    begin = number * plan.row_length;
    length = plan.row_length;
  } else {
    if (number >= static_cast<std::int64_t>(plan.counts[row_class])) return;
    number = plan.class_rows[row_class][number];
    begin = plan.offsets[number];
    length = plan.offsets[number + 1] - begin;
  }
  Chunk<E, Size> chunk{&shared.storage, plan.elements.from(begin), 0, static_cast<int>(length)};
  HullScratch<E, Size>* scratch = nullptr;
  if constexpr (Size >= 32) scratch = &shared.hull;
  const ChunkFacts facts = solve_chunk<E, Size>(chunk, team, scratch);
  if (!facts.allowed) {
    write_refused<Size>(plan.output, begin, chunk.length, true);
    return;
  }
  write_chunk(chunk, plan.output, begin, 0.0, 0.0, true, shared.edge_values);
}

template <class E>
__device__ Chunk<E, kBlock> long_chunk(const Plan<E>& plan, const LongRowPlace& place, std::int64_t number,
                                       ChunkStorage<E, kBlock>* storage) {
  const std::int64_t origin = number * kLongChunk;
  const std::int64_t left = place.row.length - origin;
  return {storage, plan.elements.from(place.row.begin), origin,
          static_cast<int>(left < kLongChunk ? left : kLongChunk)};
}

// Stores a chunk's vertices and sums for its tree.
template <class E>
__device__ void store_chunk(const Plan<E>& plan, std::int64_t id, const Chunk<E, kBlock>& chunk,
                            const ChunkFacts& facts, const Team<kBlock>& team) {
  const int tile = static_cast<int>(threadIdx.x);
  Slot<E>& slot = plan.slots[id];
  const std::uint32_t mask = chunk.mask(tile);
  const auto places = team.scan(__popc(mask));
  const bool listed = places.all <= kBlock;
  if (listed) {
    int place = places.before;
    if (chunk.exact) {
      for (std::uint32_t left = mask; left != 0; left &= left - 1) {
        const int i = tile * kTile + __ffs(static_cast<int>(left)) - 1;
        slot.places[place] = i;
        slot.total_high[place++] = chunk.exact_total(i);
      }
    } else if (mask != 0) {
      DoubleDouble total = chunk.total_before(tile);
      DoubleDouble weight = chunk.weight_before(tile);
      const int last = 31 - __clz(static_cast<int>(mask));
      for (int k = 0;; ++k) {
        const int i = tile * kTile + k;
        if ((mask >> k & 1U) != 0) {
          slot.places[place] = i;
          slot.total_high[place] = total.high;
          slot.total_low[place] = total.low;
          if constexpr (E::kWeighted) {
            slot.weight_high[place] = weight.high;
            slot.weight_low[place] = weight.low;
          }
          ++place;
        }
        if (k == last) break;
        if constexpr (E::kWeighted) {
          const TwoTerms product = two_product(chunk.weight(i), chunk.value(i));
          total = total + DoubleDouble{product.high, product.low};
          weight = weight + chunk.weight(i);
        } else {
          total = total + chunk.value(i);
        }
      }
    }
  } else {
    slot.places[tile] = mask;
    const DoubleDouble total = chunk.total_before(tile);
    slot.total_high[tile] = total.high;
    if (!chunk.exact) slot.total_low[tile] = total.low;
    if constexpr (E::kWeighted) {
      const DoubleDouble weight = chunk.weight_before(tile);
      slot.weight_high[tile] = weight.high;
      slot.weight_low[tile] = weight.low;
    }
  }
  if (tile == 0) {
    const int last = static_cast<int>(chunk.at_or_before(chunk.tiles() * kTile - 1));
    plan.chunks[id] = {0,
                       last,
                       0,
                       places.all - 1,
                       listed ? places.all : 0,
                       chunk.exact ? 1 : 0,
                       chunk.error,
                       chunk.weight_error,
                       0.0};
    SpanSums sums{};
    sums.total = chunk.total_before(kBlock);
    sums.weight = chunk.weight_before(kBlock);
    sums.magnitude = facts.magnitude;
    sums.weight_magnitude = facts.weight_magnitude;
    sums.unit = facts.unit;
    sums.weight_unit = facts.weight_unit;
    plan.sums[0][id] = sums;
  }
}

template <class E>
__global__ void __launch_bounds__(kBlock, kResident<E, kBlock>) solve_chunks(const Plan<E> plan) {
  extern __shared__ __align__(16) unsigned char memory[];
  auto& shared = *reinterpret_cast<LongShared<E>*>(memory);
  const Team<kBlock> team{&shared.team};
  const std::int64_t id = blockIdx.x;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t number = id - place.row.first_chunk;
  Chunk<E, kBlock> chunk = long_chunk(plan, place, number, &shared.storage);
  ChunkFacts facts = solve_chunk<E, kBlock>(chunk, team, &shared.hull);
  if (!facts.allowed) {
    // The row comes out NaN. Its tree goes on with a chunk that holds nothing, so that nobody meets a NaN.
    chunk.exact = !E::kWeighted;
    chunk.end_total = 0;
    if (threadIdx.x == 0) {
      plan.refused[place.number] = 1;
      if constexpr (E::kWeighted) {
        auto& sums = shared.storage.own_pairs();
        for (int t : {0, kBlock}) {
          sums.total_high[t] = 0;
          sums.total_low[t] = 0;
          sums.weight_high[t] = t == 0 ? 0.0 : 1.0;
          sums.weight_low[t] = 0;
        }
      } else {
        shared.storage.region().totals[0] = 0;
      }
    }
    facts.magnitude = 0;
    facts.unit = 0;
    facts.weight_magnitude = 1;
    facts.weight_unit = 0;
    chunk.error = 0;
    chunk.weight_error = 0;
    __syncthreads();
  }
  store_chunk(plan, id, chunk, facts, team);
  __syncthreads();
  climb(plan, place, number, shared.node, &shared.climbing, team);
}

// For every node of level 1 the nearest live chunks outside it. One block a row.
template <class E>
__global__ void __launch_bounds__(kBlock) find_neighbours(const Plan<E> plan) {
  __shared__ std::int32_t lasts[kBlock];
  __shared__ std::int32_t firsts[kBlock];
  if (blockIdx.x >= long_row_count(plan)) return;
  const LongRowPlace place = long_row(plan, blockIdx.x);
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t groups = (place.row.chunks + kFanIn - 1) / kFanIn;
  const std::int64_t share = (groups + kBlock - 1) / kBlock;
  const std::int64_t begin = min(static_cast<long long>(thread * share), static_cast<long long>(groups));
  const std::int64_t end = min(static_cast<long long>(begin + share), static_cast<long long>(groups));
  const std::uint32_t* live = plan.live + node_id(place, 1, 0);
  std::int32_t first = -1;
  std::int32_t last = -1;
  for (std::int64_t g = begin; g < end; ++g) {
    const std::uint32_t word = live[g];
    if (word == 0) continue;
    if (first < 0) first = static_cast<std::int32_t>(g * 32 + __ffs(static_cast<int>(word)) - 1);
    last = static_cast<std::int32_t>(g * 32 + 31 - __clz(static_cast<int>(word)));
  }
  firsts[thread] = first;
  lasts[thread] = last;
  __syncthreads();
  std::int32_t before = -1;
  for (int t = thread - 1; t >= 0 && before < 0; --t) before = lasts[t];
  std::int32_t after = -1;
  for (int t = thread + 1; t < kBlock && after < 0; ++t) after = firsts[t];
  if (after < 0) after = static_cast<std::int32_t>(place.row.chunks);
  const std::int64_t node = node_id(place, 1, 0);
  for (std::int64_t g = begin; g < end; ++g) {
    plan.live_before[node + g] = before;
    if (live[g] != 0) before = static_cast<std::int32_t>(g * 32 + 31 - __clz(static_cast<int>(live[g])));
  }
  for (std::int64_t g = end - 1; g >= begin; --g) {
    plan.live_after[node + g] = after;
    if (live[g] != 0) after = static_cast<std::int32_t>(g * 32 + __ffs(static_cast<int>(live[g])) - 1);
  }
}

inline constexpr int kEdgesABlock = 4;

// The value of the edge that leaves each live chunk. A warp a chunk.
template <class E>
__global__ void __launch_bounds__(32 * kEdgesABlock) value_edges(const Plan<E> plan) {
  const std::int64_t id = static_cast<std::int64_t>(blockIdx.x) * kEdgesABlock + threadIdx.x / 32;
  if (id >= plan.chunks_bound) return;
  LongRowPlace place;
  if (!find_chunk(plan, id, place)) return;
  const std::int64_t number = id - place.row.first_chunk;
  const std::int64_t group = node_id(place, 1, number / kFanIn);
  const std::uint32_t word = plan.live[group];
  if ((word >> (number % 32) & 1U) == 0) return;
  const std::uint32_t above = number % 32 == 31 ? 0U : word & (~0U << (number % 32 + 1));
  const std::int64_t next =
      above != 0 ? number / 32 * 32 + __ffs(static_cast<int>(above)) - 1 : plan.live_after[group];
  const std::int64_t a = number * kLongChunk + plan.chunks[id].last;
  const std::int64_t b = next < place.row.chunks
                             ? next * kLongChunk + plan.chunks[place.row.first_chunk + next].first
                             : place.row.length;
  // In the lowest node that holds both chunks, or the root.
  const std::int64_t other = next < place.row.chunks ? next : place.row.chunks - 1;
  int level = 1;
  while ((number >> (5 * level)) != (other >> (5 * level))) ++level;
  const std::int64_t index = number >> (5 * level);
  const std::int64_t first = index << (5 * level);
  const std::int64_t last = (index + 1) << (5 * level);
  const Node<E> node{plan,
                     place,
                     level,
                     first,
                     min(static_cast<long long>(last), static_cast<long long>(place.row.chunks)),
                     plan.sums[level][node_id(place, level, index)]};
  const SpanErrors<E> errors(node.sums);
  const NodeChain<E> chain{node, node.end(), errors.total, errors.weight};
  const Point from = chain.point(a);
  const Point to = chain.point(b);
  CertifiedSum weight{{static_cast<double>(b - a), 0.0}, 0.0};
  if constexpr (E::kWeighted) {
    weight = {to.weight.value - from.weight.value, from.weight.error + to.weight.error};
  }
  if (threadIdx.x % 32 != 0) return;
  plan.chunks[id].outgoing = certified_mean(
      plan.elements.from(place.row.begin), a, b,
      {to.total.value - from.total.value, from.total.error + to.total.error}, weight, plan.output.format);
}

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
  if (output.fit != nullptr) {
#pragma unroll 4
    for (int i = thread; i < length; i += kBlock) {
      const std::uint32_t upto = mask[i / kTile] & (~0U >> (31 - i % kTile));
      store_fit(output, base + i, shared.edge_values[before[i / kTile] + __popc(upto)]);
    }
  }
  if (output.block_starts != nullptr) {
    for (int i = thread; i < length; i += kBlock) {
      output.block_starts[base + i] = static_cast<std::uint8_t>(mask[i / kTile] >> (i % kTile) & 1U);
    }
  }
}

template <class E>
__global__ void __launch_bounds__(kBlock, kResident<E, kBlock>) write_chunks(const Plan<E> plan) {
  extern __shared__ __align__(16) unsigned char memory[];
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
