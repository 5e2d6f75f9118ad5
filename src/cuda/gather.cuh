// Merging a node whose chunks hold few vertices: they are gathered into shared memory and swept to their
// hull. What is left is written back as a range a chunk.
#pragma once

#include <cstdint>

#include "cuda/hull.cuh"
#include "cuda/list_merge.cuh"
#include "cuda/node.cuh"

namespace isofold::cuda {

inline constexpr int kGatherCapacity = 2048;
inline constexpr int kManyPoints = 512;  // above which children are merged by bridges

template <class E>
struct GatherScratch {
  PointList<E::kWeighted, kGatherCapacity> list;
  int counts[kGatherCapacity / 32];
  std::int32_t live_chunks[kGatherCapacity];  // of the node, in order
  std::int16_t first_places[kGatherCapacity];
  ListMergeScratch merging;
};

// The node's hull from a gathered list of its vertices, if they are few. Returns whether they were.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool merge_by_gathering(const Node<E>& node, const Team<kBlock>& team,
                                                   GatherScratch<E>& scratch) {
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t chunks = node.end_chunk - node.first_chunk;
  const std::int64_t share = (chunks + kBlock - 1) / kBlock;
  const std::int64_t begin = node.first_chunk + thread * share;
  const std::int64_t end = begin + share < node.end_chunk ? begin + share : node.end_chunk;
  const auto for_each_live = [&](auto&& visit) {
    for (std::int64_t chunk = begin; chunk < end;) {
      std::uint32_t word = __ldcg(node.live_word(chunk)) >> (chunk % 32);
      const std::int64_t stop =
          min(static_cast<long long>((chunk / 32 + 1) * 32), static_cast<long long>(end));
      for (; chunk < stop && word != 0; ++chunk, word >>= 1) {
        if ((word & 1U) != 0) visit(chunk);
      }
      chunk = stop;
    }
  };
  int count = 0;
  int live = 0;
  for_each_live([&](std::int64_t chunk) {
    if (count > kGatherCapacity) return;
    const ChunkRecord record = node.record(chunk);
    count += record.count > 0 ? record.last_ordinal - record.first_ordinal + 1 : kGatherCapacity + 1;
    ++live;
  });
  const auto places = team.scan(count);
  if (__syncthreads_or(count > kGatherCapacity) != 0 || places.all >= kGatherCapacity) return false;
  const auto ranks = team.scan(live);
  {
    int place = places.before;
    int rank = ranks.before;
    for_each_live([&](std::int64_t chunk) {
      const ChunkRecord record = node.record(chunk);
      scratch.live_chunks[rank] = static_cast<std::int32_t>(chunk - node.first_chunk);
      scratch.first_places[rank] = static_cast<std::int16_t>(place);
      place += record.last_ordinal - record.first_ordinal + 1;
      ++rank;
    });
  }
  __syncthreads();
  auto& list = scratch.list;
  for (int place = thread; place < places.all; place += kBlock) {
    int low = 0;
    int high = ranks.all - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (scratch.first_places[middle] <= place) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const std::int64_t chunk = node.first_chunk + scratch.live_chunks[low];
    const ChunkRecord record = node.record(chunk);
    const Slot<E>& slot = node.slot(chunk);
    const Base base = node.base(chunk);
    const int entry = record.first_ordinal + place - scratch.first_places[low];
    const DoubleDouble total{__ldcg(slot.total_high + entry),
                             record.exact != 0 ? 0.0 : __ldcg(slot.total_low + entry)};
    DoubleDouble weight{};
    if constexpr (E::kWeighted) {
      weight = base.weight + DoubleDouble{__ldcg(slot.weight_high + entry), __ldcg(slot.weight_low + entry)};
    }
    list.set(place, chunk * kLongChunk + static_cast<int>(__ldcg(slot.places + entry)), base.total + total,
             weight, entry);
  }
  if (thread == 0) list.set(places.all, node.end(), node.sums.total, node.sums.weight, 0);
  __syncthreads();
  const SpanErrors<E> errors(node.sums);
  const E row = node.plan.elements.from(node.place.row.begin);
  const SpanFacts span{node.sums.magnitude, node.sums.weight_magnitude, errors.total, errors.weight};
  list.number(places.all + 1);
  const auto is_vertex = [&](int a, int b, int d) {
    const Turn quick = list.quick_turn(a, b, d, span);
    if (quick != Turn::undecided) return quick == Turn::up;
    return certified_vertex(row, list.point(a, errors.total, errors.weight),
                            list.point(b, errors.total, errors.weight),
                            list.point(d, errors.total, errors.weight));
  };
  int left = places.all + 1;
  if (left > kManyPoints) {
    // Each child's hull is convex already; the last one's goes on to the node's end.
    const std::int64_t span_of_child = std::int64_t{1} << (5 * (node.level - 1));
    const auto children = static_cast<int>((chunks + span_of_child - 1) / span_of_child);
    if (thread <= children) {
      const std::int64_t from = (node.first_chunk + thread * span_of_child) * kLongChunk;
      int low = 0;
      int high = places.all;
      while (low < high) {
        const int middle = (low + high) / 2;
        if (list.index[middle] < from) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      scratch.merging.bounds[thread] = thread == children ? left : low;
    }
    left = merge_lists<kGatherCapacity>(list.order, children, scratch.merging, is_vertex);
  } else {
    left = sweep_block<kGatherCapacity>(list.order, left, kFewPoints, scratch.counts, is_vertex);
  }
  for (std::int64_t chunk = node.first_chunk + 32 * thread; chunk < node.end_chunk; chunk += 32 * kBlock) {
    *node.live_word(chunk) = 0;
  }
  __syncthreads();
  const auto chunk_of = [&](int i) { return list.index[list.order[i]] / kLongChunk; };
  for (int i = thread; i < left - 1; i += kBlock) {
    const std::int64_t chunk = chunk_of(i);
    ChunkRecord* record = node.plan.chunks + node.place.row.first_chunk + chunk;
    const int position = static_cast<int>(list.index[list.order[i]] % kLongChunk);
    const int ordinal = list.ordinal[list.order[i]];
    if (i == 0 || chunk_of(i - 1) != chunk) {
      record->first = position;
      record->first_ordinal = ordinal;
      atomicOr(node.live_word(chunk), 1U << (chunk % 32));
    }
    if (i == left - 2 || chunk_of(i + 1) != chunk) {
      record->last = position;
      record->last_ordinal = ordinal;
    }
  }
  return true;
}

}  // namespace isofold::cuda
