// A merged hull as a list of segments ('Merge Hulls Without Copying Vertices', Section 3.3 and Theorem 4.4):
// per chunk at most one contiguous range of that chunk's vertices. Vertices are bits of a mask, set once by
// the chunk; a merge cuts two segments and moves descriptors, never a vertex.
#pragma once

#include <cstdint>

#include "exact/exact_number.hpp"
#include "exact/host_device.hpp"

namespace isofold {

// Bit k of the row's mask: point k is a vertex of its chunk's hull.
class VertexMask {
 public:
  static constexpr int kWordBits = 32;

  VertexMask() = default;
  ISOFOLD_HOST_DEVICE explicit VertexMask(const std::uint32_t* words) : words_(words) {}

  // The first vertex at or after `index`, and the last at or before it. One must exist: callers stay within
  // segments.
  [[nodiscard]] ISOFOLD_HOST_DEVICE std::int64_t next(std::int64_t index) const {
    std::int64_t word = index / kWordBits;
    std::uint32_t bits = words_[word] & (~0U << (index % kWordBits));
    while (bits == 0) bits = words_[++word];
    return word * kWordBits + trailing_zeros(bits);
  }
  [[nodiscard]] ISOFOLD_HOST_DEVICE std::int64_t previous(std::int64_t index) const {
    std::int64_t word = index / kWordBits;
    std::uint32_t bits = words_[word] & (~0U >> (kWordBits - 1 - index % kWordBits));
    while (bits == 0) bits = words_[--word];
    return word * kWordBits + bit_length(bits) - 1;
  }
  // The first point from `index` on, and before `limit`, that is no vertex; `limit` when there is none.
  [[nodiscard]] ISOFOLD_HOST_DEVICE std::int64_t next_hole(std::int64_t index, std::int64_t limit) const {
    if (index >= limit) return limit;
    std::int64_t word = index / kWordBits;
    const std::int64_t last_word = (limit - 1) / kWordBits;
    std::uint32_t bits = ~words_[word] & (~0U << (index % kWordBits));
    while (bits == 0 && word < last_word) bits = ~words_[++word];
    const std::int64_t hole = bits == 0 ? limit : word * kWordBits + trailing_zeros(bits);
    return hole < limit ? hole : limit;
  }

  [[nodiscard]] ISOFOLD_HOST_DEVICE const std::uint32_t* words() const { return words_; }

 private:
  const std::uint32_t* words_ = nullptr;
};

// The vertices first .. last of one chunk's hull, as element indices; both are vertices.
struct Segment {
  std::int64_t first;
  std::int64_t last;
};

// A node's hull: its segments, then its end point, which is the next node's first (it is a vertex of this
// hull, too, but listed there).
struct Hull {
  const Segment* segments;
  std::int64_t count;  // at least 1
  std::int64_t end;    // index of the end point
};

// A vertex of a hull: the segment that holds it and its index; segment == count is the end point.
struct Vertex {
  std::int64_t segment;
  std::int64_t index;
};

ISOFOLD_HOST_DEVICE inline Vertex first_vertex(const Hull& hull) { return {0, hull.segments[0].first}; }
ISOFOLD_HOST_DEVICE inline Vertex end_vertex(const Hull& hull) { return {hull.count, hull.end}; }
ISOFOLD_HOST_DEVICE inline bool is_first(const Hull& hull, Vertex v) {
  return v.index == hull.segments[0].first;
}
ISOFOLD_HOST_DEVICE inline bool is_end(const Hull& hull, Vertex v) { return v.segment == hull.count; }

// v must not be the first vertex.
ISOFOLD_HOST_DEVICE inline Vertex before(const Hull& hull, const VertexMask& mask, Vertex v) {
  if (!is_end(hull, v) && v.index > hull.segments[v.segment].first)
    return {v.segment, mask.previous(v.index - 1)};
  return {v.segment - 1, hull.segments[v.segment - 1].last};
}

// v must not be the end point.
ISOFOLD_HOST_DEVICE inline Vertex after(const Hull& hull, const VertexMask& mask, Vertex v) {
  if (v.index < hull.segments[v.segment].last) return {v.segment, mask.next(v.index + 1)};
  if (v.segment + 1 < hull.count) return {v.segment + 1, hull.segments[v.segment + 1].first};
  return end_vertex(hull);
}

// Joins neighbouring hulls whose lists stand in one array, left.count descriptors at `list` and right.count
// at `list + gap`: the left one up to `left_end`, the right one from `right_start` on. Returns the number of
// segments.
ISOFOLD_HOST_DEVICE inline std::int64_t join_segments(Segment* list, std::int64_t gap, const Hull& right,
                                                      Vertex left_end, Vertex right_start) {
  list[left_end.segment].last = left_end.index;
  std::int64_t count = left_end.segment + 1;
  for (std::int64_t i = right_start.segment; i < right.count; ++i) {
    Segment segment = list[gap + i];
    if (i == right_start.segment) segment.first = right_start.index;
    list[count++] = segment;
  }
  return count;
}

}  // namespace isofold
