// Merging a node whose chunks hold many vertices: its children pairwise, in place, by the bridges between
// them.
#pragma once

#include <cstdint>

#include "cuda/gather.cuh"
#include "cuda/node.cuh"
#include "cuda/search.cuh"

namespace isofold::cuda {

inline constexpr int kNearWindow = 128;  // elements to each side of a joint

// What a warp sees of the neighbourhood of a joint.
struct NearScratch {
  double totals[2 * kNearWindow];
  std::int16_t positions[2 * kNearWindow];  // of vertices, from the joint
};

struct BridgeScratch {
  NearScratch near[kBlock / 32];
  int points[kFanIn];               // of a child; kGatherCapacity: too many to gather
  bool bends[kFanIn];               // the diagram, at the start of a unit, before any is merged
  int cut;                          // some have been merged
  std::int64_t starts[kFanIn + 1];  // the chunks that units begin with: children, or runs of them
};

// The vertices next to a joint, in order, those of the left chunk first.
struct NearVertices {
  int joint;  // the first of the right chunk
  int count;  // 0: not known
};

// The same where both chunks list their vertices and their totals are exact as doubles.
template <class E>
__device__ NearVertices near_listed(const Node<E>& node, std::int64_t middle, const VertexRange& before,
                                    const VertexRange& after, NearScratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const ChunkRecord left = node.record(middle - 1);
  const ChunkRecord right = node.record(middle);
  const SpanSums* sums = node.plan.sums[0] + node.place.row.first_chunk + middle;
  const SpanSums left_sums = load_fresh(sums - 1);
  const SpanSums right_sums = load_fresh(sums);
  if (left.exact == 0 || right.exact == 0 ||
      !exact_as_double(left_sums.magnitude + right_sums.magnitude, min(left_sums.unit, right_sums.unit))) {
    return {0, 0};
  }
  const int joint = min(before.entries(), 32);
  const int count = joint + min(after.entries(), 32);
  for (int i = lane; i < count; i += 32) {
    const bool on_left = i < joint;
    const Slot<E>& slot = node.slot(on_left ? middle - 1 : middle);
    const int entry = on_left ? before.end_entry - joint + i : after.first_entry + i - joint;
    const auto position = static_cast<int>(__ldcg(slot.places + entry));
    scratch.positions[i] = static_cast<std::int16_t>(on_left ? position - kLongChunk : position);
    scratch.totals[i] = __ldcg(slot.total_high + entry) - (on_left ? left_sums.total.high : 0.0);
  }
  return {joint, count};
}

// The same where both have masks, from the elements, whose sums there are exact as doubles.
template <class E>
__device__ NearVertices near_masked(const Node<E>& node, std::int64_t middle, const VertexRange& before,
                                    const VertexRange& after, NearScratch& scratch) {
  constexpr int kWords = kNearWindow / kTile;
  constexpr int kALane = 2 * kNearWindow / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  // Lanes hold the window's words of vertices, and eight of its elements each.
  std::uint32_t word = 0;
  if (lane < 2 * kWords) {
    const bool on_left = lane < kWords;
    const int tile = on_left ? kBlock - kWords + lane : lane - kWords;
    word = __ldcg(node.slot(on_left ? middle - 1 : middle).places + tile);
    const int low = (on_left ? before : after).first - tile * kTile;
    const int high = (on_left ? before : after).last - tile * kTile;
    if (low >= kTile || high < 0) word = 0;
    if (low > 0 && low < kTile) word &= ~0U << low;
    if (high >= 0 && high < kTile - 1) word &= (2U << high) - 1U;
  }
  const E row = node.plan.elements.from(node.place.row.begin);
  const std::int64_t start = middle * kLongChunk - kNearWindow;
  const std::int64_t end = node.end();
  double values[kALane];
  double own = 0;
  double magnitude = 0;
  FloatUnit unit;
#pragma unroll
  for (int i = 0; i < kALane; ++i) {
    const std::int64_t at = start + lane * kALane + i;
    values[i] = at < end ? row.value(at) : 0.0;
    unit.see(static_cast<float>(values[i]));
    own += values[i];
    magnitude += fabs(values[i]);
  }
  const Team<32> team{nullptr};
  if (!exact_as_double(team.reduce_sum(magnitude) * (1 + 0x1p-40), unit.unit_of_warp())) return {0, 0};
  double running = team.scan(own).before;
  const auto places = team.scan(__popc(word));
  int place = places.before;
  for (std::uint32_t left = word; left != 0; left &= left - 1) {
    scratch.positions[place++] =
        static_cast<std::int16_t>(lane * kTile - kNearWindow + __ffs(static_cast<int>(left)) - 1);
  }
  // The lane's elements are a quarter of a word's, whose vertices stand together.
  const int source = lane * kALane / kTile;
  const int quarter = lane * kALane % kTile;
  const std::uint32_t bits = __shfl_sync(0xffffffffU, word, source);
  place = __shfl_sync(0xffffffffU, places.before, source) + __popc(bits & ((1U << quarter) - 1U));
#pragma unroll
  for (int i = 0; i < kALane; ++i) {
    if ((bits >> (quarter + i) & 1U) != 0) scratch.totals[place++] = running;
    running += values[i];
  }
  return {__shfl_sync(0xffffffffU, places.before, kWords), places.all};
}

// The bridge over the joint before chunk `middle`, where both its ends lie near the joint: nearly always
// where most points are vertices. Returns whether they were found. A warp.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool bridge_near(const Node<E>& node, std::int64_t middle, NearScratch& scratch,
                                            std::int64_t& left, std::int64_t& right) {
  if (!node.live(middle - 1) || !node.live(middle)) return false;
  const VertexRange before = node.range(middle - 1);
  const VertexRange after = node.range(middle);
  if (before.listed() != after.listed()) return false;
  const NearVertices near = before.listed() ? near_listed(node, middle, before, after, scratch)
                                            : near_masked(node, middle, before, after, scratch);
  __syncwarp();
  bool found = false;
  if (near.joint > 1 && near.count - near.joint > 1) {
    int cut_left = 0;
    int cut_right = 0;
    bridge_lists(0, near.joint, near.count, &cut_left, &cut_right, [&](int a, int b, int d) {
      const auto point = [&](int i) { return LightPoint{scratch.positions[i], scratch.totals[i]}; };
      return light_vertex(point(a), point(b), point(d));
    });
    // The window says nothing of what is beyond its first and last vertex.
    found = cut_left > 0 && cut_right < near.count - 1;
    left = middle * kLongChunk + scratch.positions[cut_left];
    right = middle * kLongChunk + scratch.positions[cut_right];
  }
  __syncwarp();
  return found;
}

// Links two neighbouring runs of chunks of a node by their bridge, found by alternating tangents
// (chain_bridge.hpp): whether a vertex is too near the joint to be an end of the bridge changes once, and as
// one end moves away from the joint the other never comes back. One warp, every lane with a vertex of its
// own.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE void merge_pair(const Node<E>& node, std::int64_t first, std::int64_t middle,
                                           std::int64_t end, NearScratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const SpanErrors<E> errors(node.sums);
  const std::int64_t first_index = first * kLongChunk;
  const std::int64_t end_index = end == node.end_chunk ? node.end() : end * kLongChunk;
  const NodeChain<E, 1> chain{node, end_index, errors.total, errors.weight};
  std::int64_t left = 0;
  std::int64_t right = 0;
  bool found = false;
  if constexpr (kPlainTiles<E>) found = bridge_near(node, middle, scratch, left, right);
  if (!found) {
    left = chain.at_or_before(middle * kLongChunk - 1);
    right = middle * kLongChunk;
  }
  for (bool started = false; !found; started = true) {
    const NodePoint to{right};
    const std::int64_t back = first_that_holds(left - first_index + 1, [&](std::int64_t k) {
      const std::int64_t vertex = chain.at_or_before(left - k);
      if (vertex == first_index) return true;
      return chain.is_vertex({chain.at_or_before(vertex - 1)}, {vertex}, to);
    });
    if (back == 0 && started) break;
    left = chain.at_or_before(left - back);
    const NodePoint from{left};
    const std::int64_t forth = first_that_holds(end_index - right + 1, [&](std::int64_t k) {
      const std::int64_t vertex = chain.at_or_after(right + k);
      return vertex == end_index || chain.is_vertex(from, {vertex}, {chain.at_or_after(vertex + 1)});
    });
    if (forth == 0) break;
    right = chain.at_or_after(right + forth);
  }
  __syncwarp();
  VertexRange* ranges = node.plan.ranges + node.place.row.first_chunk;
  if (lane == 0) {
    const std::int64_t left_chunk = left / kLongChunk;
    VertexRange range = node.range(left_chunk);
    range.last = static_cast<std::uint16_t>(left % kLongChunk);
    if (range.listed()) {
      range.end_entry = static_cast<std::uint16_t>(
          last_listed(node.slot(left_chunk), range.first_entry, range.end_entry - 1, range.last) + 1);
    }
    ranges[left_chunk] = range;
    if (right < end_index) {
      const std::int64_t right_chunk = right / kLongChunk;
      range = node.range(right_chunk);
      range.first = static_cast<std::uint16_t>(right % kLongChunk);
      if (range.listed()) {
        range.first_entry = static_cast<std::uint16_t>(
            last_listed(node.slot(right_chunk), range.first_entry, range.end_entry - 1, range.first));
      }
      ranges[right_chunk] = range;
    }
  }
  // The chunks strictly between the two ends die.
  const std::int64_t from = left / kLongChunk + 1;
  const std::int64_t to = right < end_index ? right / kLongChunk : end;
  for (std::int64_t base = from / kFanIn * kFanIn + lane * kFanIn; base < to; base += 32 * kFanIn) {
    const LiveWord gone = live_chunks(base, from, to);
    if (gone != 0) atomicAnd(node.live_word(base), ~gone);
  }
}

// Whether the diagram bends up where one run of chunks ends and the next begins, between their vertices next
// to there: the start of the second is one of its vertices. A thread.
template <class E>
ISOFOLD_DEVICE_OUT_OF_LINE bool joint_bends(const Node<E>& node, std::int64_t middle) {
  const SpanErrors<E> errors(node.sums);
  const NodeChain<E, 1> chain{node, node.end(), errors.total, errors.weight};
  const std::int64_t joint = middle * kLongChunk;
  return chain.is_vertex({chain.at_or_before(joint - 1)}, {joint}, {chain.at_or_after(joint + 1)});
}

// How many points every child has.
template <class E>
__device__ void count_points(const Node<E>& node, BridgeScratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));
  for (int child = static_cast<int>(threadIdx.x) / 32; child < kFanIn; child += kBlock / 32) {
    const std::int64_t begin = node.first_chunk + child * span;
    const std::int64_t end =
        min(static_cast<long long>(begin + span), static_cast<long long>(node.end_chunk));
    int count = 0;
    // More than can be gathered need not be counted: of dense children the first few chunks are enough.
    for (std::int64_t base = begin; base < end && count < kGatherCapacity; base += 32) {
      const std::int64_t chunk = base + lane;
      int entries = 0;
      if (chunk < end && node.live(chunk)) entries = min(node.range(chunk).entries(), kGatherCapacity);
      count = min(count + warp_sum(entries), kGatherCapacity);
    }
    if (lane == 0) scratch.points[child] = count;
  }
  __syncthreads();
}

// Cuts the node's children into units and returns how many they are: runs of children that can be gathered
// are, and become one; any other child is one of its own.
template <class E>
__device__ int find_units(Node<E>& node, const SpanSums& sums, const Team<kBlock>& team,
                          GatherScratch<E>& gathering, BridgeScratch& scratch) {
  const std::int64_t span = std::int64_t{1} << (kFanBits * (node.level - 1));
  const auto children = static_cast<int>((node.end_chunk - node.first_chunk + span - 1) / span);
  count_points(node, scratch);
  int units = 0;
  for (int child = 0; child < children;) {
    int end = child + 1;
    for (int points = scratch.points[child]; end < children; ++end) {
      points += scratch.points[end];
      if (points >= kGatherCapacity) break;
    }
    const std::int64_t first = node.first_chunk + child * span;
    const std::int64_t stop =
        min(static_cast<long long>(node.first_chunk + end * span), static_cast<long long>(node.end_chunk));
    if (threadIdx.x == 0) {
      scratch.starts[units] = first;
      scratch.starts[units + 1] = stop;
    }
    ++units;
    if (end > child + 1) merge_by_gathering(node, sums, {first, stop}, team, gathering);
    child = end;
  }
  __syncthreads();
  return units;
}

// Merges the node's units pairwise. Joints that bend up from the start need no bridge as long as nothing has
// been cut.
template <class E>
__device__ void merge_by_bridges(const Node<E>& node, BridgeScratch& scratch, int units) {
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const auto unit = static_cast<int>(threadIdx.x);
  const std::int64_t* starts = scratch.starts;
  if (unit == 0) scratch.cut = 0;
  if (unit > 0 && unit < units) scratch.bends[unit] = joint_bends(node, starts[unit]);
  __syncthreads();
  for (int reach = 1; reach < units; reach *= 2) {
    const bool cut = scratch.cut != 0;  // in an earlier round: this one's pairs do not touch each other
    __syncthreads();
    for (int first = 2 * reach * warp; first + reach < units; first += 2 * reach * (kBlock / 32)) {
      if (!cut && scratch.bends[first + reach]) continue;
      if (threadIdx.x % 32 == 0) atomicExch(&scratch.cut, 1);
      merge_pair(node, starts[first], starts[first + reach], starts[min(first + 2 * reach, units)],
                 scratch.near[warp]);
    }
    __threadfence();
    __syncthreads();
  }
}

}  // namespace isofold::cuda
