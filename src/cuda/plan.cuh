// What a call's kernels share: the problem, and scratch memory by chunk, by node and by row.
//
// Rows longer than a chunk are cut into chunks, and their chunks form a tree of fan-in 64. Level 0 is the
// chunks; a node of level L covers 64^L of them. Chunks of all long rows are numbered through, and so are the
// nodes of a level: node j of the k-th long row, whose chunks start at c, is (c >> 6 L) + k + j, which no two
// rows share.
#pragma once

#include <cstdint>

#include "cuda/scan.cuh"
#include "exact/format.hpp"

namespace isofold::cuda {

inline constexpr int kLevels = 6;  // rows of up to 64^5 chunks, 8.8e12 elements; level 0 is the chunks
inline constexpr int kFanBits = 6;
inline constexpr int kFanIn = 1 << kFanBits;

// The chunks of a node of level 1 that still have vertices, a bit each.
using LiveWord = unsigned long long;
static_assert(8 * sizeof(LiveWord) == kFanIn);
__device__ inline int lowest_live(LiveWord word) { return __ffsll(static_cast<long long>(word)) - 1; }
__device__ inline int highest_live(LiveWord word) { return 63 - __clzll(static_cast<long long>(word)); }
__device__ inline LiveWord live_below(LiveWord word, int bit) { return word & ((1ULL << bit) - 1); }
__device__ inline LiveWord live_above(LiveWord word, int bit) { return word & ~(2 * (1ULL << bit) - 1); }
// The bits of the word for chunks [base, base + 64) that lie in [first, end), some of which do.
__device__ inline LiveWord live_chunks(std::int64_t base, std::int64_t first, std::int64_t end) {
  LiveWord word = ~LiveWord{0};
  if (first > base) word &= word << (first - base);
  if (end < base + kFanIn) word &= ~LiveWord{0} >> (base + kFanIn - end);
  return word;
}
__device__ inline bool is_live(LiveWord word, int bit) { return (word >> bit & 1U) != 0; }
inline constexpr int kClasses = 4;  // short rows: a lane, four lanes, a warp, a block each
__host__ __device__ constexpr int class_size(int row_class) {
  return row_class == 0 ? 1 : (row_class == 1 ? 4 : (row_class == 2 ? 32 : kBlock));
}
inline constexpr int kFirstScanned = 2;  // classes from here on are scanned by a warp first
inline constexpr int kLongChunk = kChunk<kBlock>;

// Sums over a chunk or node, and what their exactness is judged by.
struct SpanSums {
  DoubleDouble total;
  DoubleDouble weight;
  double magnitude;
  double weight_magnitude;
  int unit;
  int weight_unit;
};

// Where a chunk or node stands in its parent: the sums before it there.
struct Base {
  DoubleDouble total;
  DoubleDouble weight;
};

// What does not change of a stored chunk, but for the last.
struct ChunkRecord {
  int count;     // vertices listed; 0: the vertices are the bits of a mask
  int exact;     // running totals inside are exact as doubles
  int sorted;    // its values never fall
  double error;  // of the pairs inside
  double weight_error;
  double outgoing;  // the value of the edge that leaves the last vertex
};

// The vertices of a chunk that its node's hull has kept: one range (Theorem 4.4), as positions in the chunk
// and as places in its list of vertices. Of dead chunks, whose bit of `live` is cleared, it says nothing.
struct alignas(8) VertexRange {
  std::uint16_t first_entry;
  std::uint16_t end_entry;  // kMasked: the chunk has a mask instead
  std::uint16_t first;
  std::uint16_t last;

  __device__ int entries() const { return end_entry - first_entry; }
  __device__ bool listed() const;
};
inline constexpr std::uint16_t kMasked = 0xffff;
__device__ inline bool VertexRange::listed() const { return end_entry != kMasked; }

// The vertices of a chunk: a list of up to 256 with their totals, or a mask with the totals at its tiles.
template <class E>
struct Slot {
  double total_high[kBlock];
  double total_low[kBlock];
  double weight_high[E::kWeighted ? kBlock : 1];
  double weight_low[E::kWeighted ? kBlock : 1];
  std::uint32_t places[kBlock];         // positions, or mask words
  std::uint32_t occupied[kBlock / 32];  // bit t of the whole: mask word t is not empty
};

struct LongRow {
  std::int64_t begin;
  std::int64_t length;
  std::int64_t first_chunk;
  std::int64_t chunks;
};

// Counters of a call.
struct Work {
  int dense_chunks;
  int first_chunks;
  int block_nodes;
  int taken;  // of dense chunks and nodes, by the blocks that solve and merge
};

struct Output {
  void* fit;          // or nullptr
  int to_float32;     // its type
  int to_input_type;  // its type is the values'
  Format format;
  double lower;
  double upper;
  std::uint8_t* block_starts;  // or nullptr
};

template <class E>
struct Plan {
  E elements;  // of the whole batch
  Output output;
  // Rows: a rectangle, or offsets on the device.
  std::int64_t rows;
  std::int64_t row_length;
  const std::int64_t* offsets;
  std::int64_t total;
  // Short rows by class, ragged only: row numbers and how many there are.
  std::int64_t* class_rows[kClasses];
  int* faulty_offsets;         // they do not rise from 0 to the total: no row is in any class
  unsigned long long* counts;  // rows a class; then long rows and their chunks, packed
  int lane_rows;               // the two shortest classes go to lanes first (lane_rows.cuh)
  // Of the classes that warps or lanes take first, the rows left to their teams.
  std::int64_t* dense_rows[kClasses];
  unsigned long long* dense_counts;
  // Long rows.
  std::int64_t long_rows_bound;
  std::int64_t chunks_bound;
  LongRow* long_rows;       // ragged
  std::int32_t* chunk_row;  // ragged: chunk -> long row
  double* tile_totals;      // a tile: what the scan leaves for the filter
  double* tile_total_lows;
  double* tile_weights;
  double* tile_weight_lows;
  float* tile_depths;
  ScanFacts* group_facts;
  Work* work;
  std::int32_t* dense_chunks;  // that the scan has left for a block
  std::int32_t* first_chunks;  // of every node of level 1
  std::int32_t* block_nodes;   // those of them that warps have left for a block (few_chunks.cuh)
  int* dense_children;         // a node of level 1: how many of its chunks are dense
  Slot<E>* slots;
  ChunkRecord* chunks;
  VertexRange* ranges;
  SpanSums* sums[kLevels];
  Base* bases[kLevels];
  LiveWord* live;             // a word a node of level 1: its chunks that still have vertices
  std::int32_t* live_before;  // a node of level 1: the last live chunk before its own, in the row
  std::int32_t* live_after;   // the first one after its own, or the row's number of chunks
  int* arrivals[kLevels];
  int* refused;  // per long row: it holds a value or weight that is not allowed
};

// Rows of at most so many elements are short: a team takes each to its end. Longer ragged ones are chunks, if
// only one: the warps of a block would wait for the longest of their rows, and code that filters and then
// writes is more than an instruction cache holds (record 20).
template <class E>
__host__ __device__ std::int64_t longest_short_row(const Plan<E>& plan) {
  return plan.offsets != nullptr ? class_size(kClasses - 2) * kTile : kLongChunk;
}

struct LongRowPlace {
  LongRow row;
  std::int64_t number;  // among the long rows
};

// Long rows and their chunks are counted by one atomic, so that both rise together.
inline constexpr int kChunkBits = 40;
template <class E>
__device__ LongRowPlace long_row(const Plan<E>& plan, std::int64_t number) {
  if (plan.offsets == nullptr) {
    const std::int64_t chunks = (plan.row_length + kLongChunk - 1) / kLongChunk;
    return {{number * plan.row_length, plan.row_length, number * chunks, chunks}, number};
  }
  return {plan.long_rows[number], number};
}

template <class E>
__device__ bool find_chunk(const Plan<E>& plan, std::int64_t chunk, LongRowPlace& place) {
  if (plan.offsets == nullptr) {
    const std::int64_t chunks = (plan.row_length + kLongChunk - 1) / kLongChunk;
    place = long_row(plan, chunk / chunks);
    return true;
  }
  const auto chunks = plan.counts[kClasses] & ((1ULL << kChunkBits) - 1);
  if (chunk >= static_cast<std::int64_t>(chunks)) return false;
  place = long_row(plan, plan.chunk_row[chunk]);
  return true;
}

// Node j of a level in a row.
__device__ inline std::int64_t node_id(const LongRowPlace& place, int level, std::int64_t j) {
  return level == 0 ? place.row.first_chunk + j
                    : (place.row.first_chunk >> (kFanBits * level)) + place.number + j;
}

}  // namespace isofold::cuda
