// The bridge of two neighbouring convex chains, by alternating tangents: the line below both that touches
// each.
//
// From a vertex of one chain the tangent to the other is found by galloping outwards from where the last one
// touched, then by bisection; then the same from the touched vertex back, until neither end moves. Both ends
// only ever move outwards, so it ends; and since a point that slides along the common tangent keeps it, the
// alternation converges quadratically where the chains are smooth: a handful of rounds even for chains of
// millions of vertices. Where the ends are near it is the walk of 'Merge Hulls Without Copying Vertices',
// Lemma 4.2. Outermost points of contact are taken, so the merged chain stays strictly convex.
#pragma once

#include <cstdint>

#include "exact/host_device.hpp"

namespace isofold {

// What a GPU runs is kept in few copies: inlined at every use it would not fit the instruction cache.
//
// Chain: Point, `point(index)`, `is_vertex(a, b, d)`, `at_or_before(index)` and `at_or_after(index)`, the
// nearest vertices, one of which exists wherever it is asked for. Indices are those of the diagram's points.
template <class Chain>
class ChainBridge {
 public:
  using Index = std::int64_t;

  // The left chain runs from `first` to `left`, the right one from `right` to `last`.
  ISOFOLD_OUT_OF_LINE ChainBridge(const Chain& chain, Index first, Index left, Index right, Index last)
      : chain_(chain), first_(first), last_(last), left_(left), right_(right) {
    auto left_point = chain_.point(left_);
    auto right_point = chain_.point(right_);
    bool left_settled = false;
    for (;;) {
      const Index old_left = left_;
      left_ = touch_left(left_, left_point, right_point);
      if (left_ != old_left) {
        left_point = chain_.point(left_);
      } else if (left_settled) {
        return;
      }
      left_settled = true;
      const Index old_right = right_;
      right_ = touch_right(right_, right_point, left_point);
      if (right_ == old_right) return;
      right_point = chain_.point(right_);
    }
  }

  [[nodiscard]] ISOFOLD_HOST_DEVICE Index left() const { return left_; }
  [[nodiscard]] ISOFOLD_HOST_DEVICE Index right() const { return right_; }

 private:
  using Point = typename Chain::Point;

  // Whether the left chain up to v, continued to `right`, bends up at v.
  ISOFOLD_OUT_OF_LINE bool keeps_left(Index v, const Point& at, const Point& right) const {
    return v == first_ || chain_.is_vertex(chain_.point(chain_.at_or_before(v - 1)), at, right);
  }
  ISOFOLD_HOST_DEVICE bool keeps_left(Index v, const Point& right) const {
    return v == first_ || keeps_left(v, chain_.point(v), right);
  }
  // Whether the line from `left`, continued along the right chain from v on, bends up at v.
  ISOFOLD_OUT_OF_LINE bool keeps_right(Index v, const Point& at, const Point& left) const {
    return v == last_ || chain_.is_vertex(left, at, chain_.point(chain_.at_or_after(v + 1)));
  }
  ISOFOLD_HOST_DEVICE bool keeps_right(Index v, const Point& left) const {
    return v == last_ || keeps_right(v, chain_.point(v), left);
  }

  // The last vertex at or before `from` that is kept: all vertices before it are, none after it is.
  ISOFOLD_HOST_DEVICE Index touch_left(Index from, const Point& at, const Point& right) const {
    if (keeps_left(from, at, right)) return from;
    Index dropped = from;
    Index kept = first_;
    for (Index step = 1; dropped - step > first_; step *= 4) {
      const Index v = chain_.at_or_before(dropped - step);
      if (keeps_left(v, right)) {
        kept = v;
        break;
      }
      dropped = v;
    }
    for (;;) {
      Index v = chain_.at_or_before(kept + (dropped - kept) / 2);
      if (v <= kept) v = chain_.at_or_after(kept + (dropped - kept) / 2 + 1);
      if (v >= dropped) return kept;
      (keeps_left(v, right) ? kept : dropped) = v;
    }
  }

  ISOFOLD_HOST_DEVICE Index touch_right(Index from, const Point& at, const Point& left) const {
    if (keeps_right(from, at, left)) return from;
    Index dropped = from;
    Index kept = last_;
    for (Index step = 1; dropped + step < last_; step *= 4) {
      const Index v = chain_.at_or_after(dropped + step);
      if (keeps_right(v, left)) {
        kept = v;
        break;
      }
      dropped = v;
    }
    for (;;) {
      Index v = chain_.at_or_after(dropped + (kept - dropped + 1) / 2);
      if (v >= kept) v = chain_.at_or_before(dropped + (kept - dropped + 1) / 2 - 1);
      if (v <= dropped) return kept;
      (keeps_right(v, left) ? kept : dropped) = v;
    }
  }

  const Chain& chain_;
  Index first_;
  Index last_;
  Index left_;
  Index right_;
};

}  // namespace isofold
