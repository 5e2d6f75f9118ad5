// The bridge of two neighbouring hulls: the line below both that touches each ('Merge Hulls Without Copying
// Vertices', Lemma 4.2). The hulls share a point, the right one's first. A walk from it removes a vertex a
// step; past a cap, a bisection over segments and then within one takes over (Section 3.3). Unlike the
// paper's, the search also takes the outermost points of contact, so merged hulls stay strictly convex and
// their blocks are the maximal ones.
#pragma once

#include <cstdint>

#include "exact/host_device.hpp"
#include "geometry/point.hpp"
#include "geometry/segments.hpp"

namespace isofold {

struct Bridge {
  Vertex left;   // last vertex kept of the left hull
  Vertex right;  // first vertex kept of the right hull, possibly its end point
};

struct BridgeWork {
  std::int64_t walk_steps = 0;    // turns asked while walking
  std::int64_t search_turns = 0;  // turns asked while searching
  bool searched = false;
};

// Diagram: `mask()`, `point(index)` and `is_vertex(a, b, d)`.
template <class Diagram>
class BridgeFinder {
 public:
  ISOFOLD_HOST_DEVICE BridgeFinder(const Diagram& diagram, const Hull& left, const Hull& right,
                                   BridgeWork* work)
      : diagram_(diagram), left_(left), right_(right), work_(work) {}

  ISOFOLD_HOST_DEVICE Bridge find(std::int64_t walk_cap) {
    // The shared point: a vertex of the merged hull if the diagram bends up there.
    const Vertex shared = first_vertex(right_);
    Vertex l = before(left_, diagram_.mask(), end_vertex(left_));
    Vertex r = after(right_, diagram_.mask(), shared);
    Point l_point = diagram_.point(l.index);
    Point r_point = diagram_.point(r.index);
    ++work_->walk_steps;
    if (diagram_.is_vertex(l_point, diagram_.point(shared.index), r_point)) return {l, shared};

    bool moved = true;
    while (moved) {
      moved = false;
      while (!is_first(left_, l)) {
        if (work_->walk_steps >= walk_cap) return search();
        const Vertex next = before(left_, diagram_.mask(), l);
        const Point next_point = diagram_.point(next.index);
        ++work_->walk_steps;
        if (diagram_.is_vertex(next_point, l_point, r_point)) break;
        l = next;
        l_point = next_point;
        moved = true;
      }
      while (!is_end(right_, r)) {
        if (work_->walk_steps >= walk_cap) return search();
        const Vertex next = after(right_, diagram_.mask(), r);
        const Point next_point = diagram_.point(next.index);
        ++work_->walk_steps;
        if (diagram_.is_vertex(l_point, r_point, next_point)) break;
        r = next;
        r_point = next_point;
        moved = true;
      }
    }
    return {l, r};
  }

  // The bridge by bisection alone, where the shared point is known to be no vertex of the merged hull.
  ISOFOLD_HOST_DEVICE Bridge search() {
    work_->searched = true;
    // The left end is the last vertex at which the left hull, followed by the tangent to the right one, bends
    // up: left of it all do, right of it none does.
    std::int64_t low = 0;
    std::int64_t high = left_.count;  // the first vertex of segment `low` is kept, that of `high` is not
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      (is_kept({middle, left_.segments[middle].first}) ? low : high) = middle;
    }
    std::int64_t first = left_.segments[low].first;  // kept
    std::int64_t last = left_.segments[low].last;
    while (first < last) {
      const std::int64_t middle = diagram_.mask().next(first + (last - first) / 2 + 1);
      if (middle <= last && is_kept({low, middle})) {
        first = middle;
      } else {
        last = diagram_.mask().previous(first + (last - first) / 2);
      }
    }
    const Vertex l{low, first};
    return {l, tangent(diagram_.point(l.index))};
  }

 private:
  ISOFOLD_HOST_DEVICE bool is_kept(Vertex v) {
    if (is_first(left_, v)) return true;
    const Point point = diagram_.point(v.index);
    const Vertex touch = tangent(point);
    ++work_->search_turns;
    return diagram_.is_vertex(diagram_.point(before(left_, diagram_.mask(), v).index), point,
                              diagram_.point(touch.index));
  }

  // The vertex of the right hull where the tangent from a point of the left hull touches it, the last one if
  // it touches an edge: the first vertex, past the shared point, after which the line from `from` bends up.
  ISOFOLD_HOST_DEVICE Vertex tangent(const Point& from) {
    std::int64_t low = 0;
    std::int64_t high = right_.count;  // the first segment whose last vertex is not passed, or the end point
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (is_passed(from, {middle, right_.segments[middle].last})) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == right_.count) return end_vertex(right_);
    std::int64_t first = right_.segments[low].first;
    std::int64_t last = right_.segments[low].last;  // not passed
    while (first < last) {
      const std::int64_t middle = diagram_.mask().previous(first + (last - first - 1) / 2);
      if (is_passed(from, {low, middle})) {
        first = diagram_.mask().next(middle + 1);
      } else {
        last = middle;
      }
    }
    return {low, first};
  }

  ISOFOLD_HOST_DEVICE bool is_passed(const Point& from, Vertex v) {
    // From the shared point itself no line is drawn: it is known to lie on or above the bridge.
    if (v.index == first_vertex(right_).index) return true;
    const Vertex next = after(right_, diagram_.mask(), v);
    ++work_->search_turns;
    return !diagram_.is_vertex(from, diagram_.point(v.index), diagram_.point(next.index));
  }

  const Diagram& diagram_;
  const Hull& left_;
  const Hull& right_;
  BridgeWork* work_;
};

}  // namespace isofold
