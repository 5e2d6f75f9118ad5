// Device memory of a call: where the plan's arrays lie in one block of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cuda/device_call.hpp"
#include "cuda/plan.cuh"

namespace isofold::cuda {

// Rows that a class of short rows can have: of a rectangle, all or none.
template <class E>
std::int64_t rows_of_class(const Plan<E>& plan, int row_class) {
  const std::int64_t longest = std::min(std::int64_t{class_size(row_class)} * kTile, longest_short_row(plan));
  const std::int64_t shortest = row_class == 0 ? 1 : std::int64_t{class_size(row_class - 1)} * kTile + 1;
  if (shortest > longest) return 0;
  if (plan.offsets != nullptr) return std::min(plan.rows, plan.total / shortest);
  return plan.row_length >= shortest && plan.row_length <= longest ? plan.rows : 0;
}

// Nodes of a level that the plan's rows can have, once its bounds of chunks and long rows are known.
template <class E>
std::int64_t nodes_bound(const Plan<E>& plan, int level) {
  return plan.chunks_bound == 0 ? 0 : (plan.chunks_bound >> (kFanBits * level)) + plan.long_rows_bound + 1;
}

// Places the plan's scratch in `memory`; the first bytes, whose number is returned in `zeroed`, must be
// zeroed before a run. Returns the size of it all.
template <class E>
std::int64_t place_scratch(Plan<E>& plan, void* memory, std::int64_t* zeroed) {
  Carver carver(memory);
  const bool ragged = plan.offsets != nullptr;
  std::int64_t long_rows = 0;
  std::int64_t chunks = 0;
  if (ragged) {
    long_rows = std::min(plan.rows, plan.total / (longest_short_row(plan) + 1));
    chunks = long_rows == 0 ? 0 : plan.total / kLongChunk + long_rows;
  } else if (plan.row_length > longest_short_row(plan)) {
    long_rows = plan.rows;
    chunks = plan.rows * ((plan.row_length + kLongChunk - 1) / kLongChunk);
  }
  plan.long_rows_bound = long_rows;
  plan.chunks_bound = chunks;
  const auto nodes = [&](int level) { return nodes_bound(plan, level); };
  plan.faulty_offsets = carver.take<int>(ragged ? 1 : 0);
  plan.counts = carver.take<unsigned long long>(ragged ? kClasses + 1 : 0);
  plan.dense_counts = carver.take<unsigned long long>(kClasses);
  plan.work = carver.take<Work>(chunks == 0 ? 0 : 1);
  plan.dense_children = carver.take<int>(nodes(1));
  plan.refused = carver.take<int>(long_rows);
  for (int level = 1; level < kLevels; ++level) plan.arrivals[level] = carver.take<int>(nodes(level));
  *zeroed = carver.used();
  for (int c = 0; c < kClasses; ++c) {
    const std::int64_t rows = rows_of_class(plan, c);
    plan.class_rows[c] = carver.take<std::int64_t>(ragged ? rows : 0);
    plan.dense_rows[c] = carver.take<std::int64_t>(c >= kFirstScanned || plan.lane_rows != 0 ? rows : 0);
  }
  if (ragged) {
    plan.long_rows = carver.take<LongRow>(long_rows);
    plan.chunk_row = carver.take<std::int32_t>(chunks);
  }
  const std::int64_t tiles = chunks * kScanTiles;
  plan.tile_totals = carver.take<double>(tiles);
  plan.tile_total_lows = carver.take<double>(kPlainTiles<E> ? 0 : tiles);
  plan.tile_weights = carver.take<double>(E::kWeighted ? tiles : 0);
  plan.tile_weight_lows = carver.take<double>(E::kWeighted ? tiles : 0);
  plan.tile_depths = carver.take<float>(tiles);
  plan.group_facts = carver.take<ScanFacts>(chunks * kGroups);
  plan.dense_chunks = carver.take<std::int32_t>(chunks);
  plan.first_chunks = carver.take<std::int32_t>(nodes(1));
  plan.block_nodes = carver.take<std::int32_t>(nodes(1));
  plan.slots = carver.take<Slot<E>>(chunks);
  plan.chunks = carver.take<ChunkRecord>(chunks);
  plan.ranges = carver.take<VertexRange>(chunks);
  for (int level = 0; level < kLevels; ++level) {
    const std::int64_t count = level == 0 ? chunks : nodes(level);
    plan.sums[level] = carver.take<SpanSums>(count);
    plan.bases[level] = carver.take<Base>(count);
  }
  plan.live = carver.take<LiveWord>(nodes(1));
  plan.live_before = carver.take<std::int32_t>(nodes(1));
  plan.live_after = carver.take<std::int32_t>(nodes(1));
  return carver.used();
}

}  // namespace isofold::cuda
