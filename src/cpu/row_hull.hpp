// The hull of a row of several chunks. Chunk hulls first, side by side; then a fixed binary tree of merges,
// each of which finds one bridge and cuts two segments; at the root the segments are the row's hull ('Merge
// Hulls Without Copying Vertices', Sections 3.3 and 4, Theorem 4.4). Scratch: a bit an element, a pair of
// doubles a tile (two with weights), a few words a chunk.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithm/row_view.hpp"
#include "cpu/chunk.hpp"
#include "cpu/exact_row.hpp"
#include "geometry/bridge.hpp"
#include "geometry/segments.hpp"
#include "geometry/turn.hpp"

namespace isofold::cpu {

class RowHull {
 public:
  static constexpr std::int64_t kWalkCap = 64;

  RowHull(const RowView& row, std::int64_t chunk_size);

  [[nodiscard]] std::int64_t chunks() const { return chunks_; }
  [[nodiscard]] std::int64_t chunk_begin(std::int64_t chunk) const { return chunk * chunk_size_; }
  [[nodiscard]] std::int64_t chunk_end(std::int64_t chunk) const;

  // Stage 1, any order, any thread: one chunk's hull and partial sums. Returns whether its elements are
  // allowed.
  bool add_chunk(std::int64_t chunk, Chunk* scratch);
  // Between the stages: where each chunk starts in the row's diagram.
  void place_chunks();
  // Stage 2, level by level: level r merges the nodes of 2^r chunks that start at chunks `first` and first +
  // 2^r.
  [[nodiscard]] int levels() const;
  [[nodiscard]] std::int64_t merges(int level) const;
  BridgeWork merge(int level, std::int64_t index);

  // The node that starts at `chunk`, as far as it has been merged; chunk 0 is the root at the end.
  [[nodiscard]] Hull node(std::int64_t chunk) const;
  [[nodiscard]] std::vector<Segment>& segments() { return segments_; }

  [[nodiscard]] const Survey& survey(std::int64_t chunk) const {
    return surveys_[static_cast<std::size_t>(chunk)];
  }
  [[nodiscard]] const ExactRow& exact() const { return exact_; }

  // The diagram, as BridgeFinder wants it.
  [[nodiscard]] VertexMask mask() const { return VertexMask(mask_.data()); }
  [[nodiscard]] Point point(std::int64_t index) const;
  [[nodiscard]] bool is_vertex(const Point& a, const Point& b, const Point& d) const;

 private:
  // Whether all chunks that the elements [begin, end) lie in hold one and the same value.
  [[nodiscard]] bool is_constant(std::int64_t begin, std::int64_t end) const;

  RowView row_;
  std::int64_t chunk_size_;
  std::int64_t chunks_;
  std::vector<std::uint32_t> mask_;          // vertices of chunk hulls
  std::vector<DoubleDouble> tile_totals_;    // before each tile, from its chunk's start
  std::vector<DoubleDouble> tile_weights_;   // likewise, weighted only
  std::vector<DoubleDouble> chunk_totals_;   // each chunk's own; after place_chunks: before each chunk
  std::vector<DoubleDouble> chunk_weights_;  //
  std::vector<Survey> surveys_;
  std::vector<Segment> segments_;             // a node's list stands in its chunks' slots
  std::vector<std::int64_t> segment_counts_;  // of the node that starts at a chunk
  std::vector<std::int64_t> node_ends_;       // its end point
  double total_error_ = 0.0;
  double weight_error_ = 0.0;
  ExactRow exact_;
};

}  // namespace isofold::cpu
