// The kernel for rows of few chunks that hold few vertices: a warp merges the row's only node, and leaves any
// other node to the blocks of long_rows.cuh. Its steps are those of gather.cuh. A block has as little to do
// there and waits at every step: a thousand rows of two chunks took four times as long.
#pragma once

#include <cstdint>

#include "cuda/gather.cuh"
#include "cuda/neighbours.cuh"
#include "cuda/start_kernel.cuh"

namespace isofold::cuda {

inline constexpr int kFewChunks = 4;      // rows of equal length have at most as many if warps are to try
inline constexpr int kFewVertices = 256;  // with the row's end
inline constexpr int kFewWarps = 8;

template <class E>
struct FewScratch {
  PointList<E::kWeighted, kFewVertices> list;
  JointScratch joints;
};

template <class E>
struct FewShared {
  FewScratch<E> warps[kFewWarps];
};

// Lists a row's vertices and then its end, and where its chunks' begin in that list; returns how many they
// are, or 0 where they are too many or not all listed. The node's sums are known then.
template <class E>
__device__ int gather_few(Node<E>& node, FewScratch<E>& scratch) {
  constexpr unsigned kAll = 0xffffffffU;
  constexpr int kALane = kFanIn / 32;
  static_assert(kALane == 2);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto chunks = static_cast<int>(node.end_chunk);
  VertexRange own[kALane];
  int count = 0;
#pragma unroll
  for (int i = 0; i < kALane; ++i) {
    const int chunk = kALane * lane + i;
    own[i] = chunk < chunks ? node.range(chunk) : VertexRange{};
    count += own[i].entries();
  }
  const auto places = Team<32>{nullptr}.scan(min(count, kFewVertices));
  if (places.all >= kFewVertices) return 0;
  node.sums = sum_children(node, 0);

  auto& list = scratch.list;
  const int* bounds = scratch.joints.bounds;
  scratch.joints.bounds[kALane * lane] = places.before;
  scratch.joints.bounds[kALane * lane + 1] = places.before + own[0].entries();
  __syncwarp();
  // Each entry's place gets its name; then all lanes fetch what is named.
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const VertexRange& mine = own[chunk % kALane == 0 ? 0 : 1];
    const int first = __shfl_sync(kAll, static_cast<int>(mine.first_entry), chunk / kALane);
    const int entries = __shfl_sync(kAll, mine.entries(), chunk / kALane);
    for (int i = lane; i < entries; i += 32) {
      list.index[bounds[chunk] + i] = std::int64_t{chunk} << 16 | (first + i);
    }
  }
  __syncwarp();
#pragma unroll 4
  for (int i = lane; i < places.all; i += 32) {
    const std::int64_t name = list.index[i];
    const auto entry = static_cast<int>(name & 0xffff);
    const Slot<E>& slot = node.slot(name >> 16);
    const Base base = node.base(0, name >> 16);
    const DoubleDouble total = base.total + DoubleDouble{slot.total_high[entry], slot.total_low[entry]};
    DoubleDouble weight{};
    if constexpr (E::kWeighted) {
      weight = base.weight + DoubleDouble{slot.weight_high[entry], slot.weight_low[entry]};
    }
    list.set(i, (name >> 16) * kLongChunk + slot.places[entry], total, weight, entry);
  }
  if (lane == 0) list.set(places.all, node.end(), node.sums.total, node.sums.weight, 0);
  for (int i = lane; i <= places.all; i += 32) list.order[i] = static_cast<std::uint16_t>(i);
  __syncwarp();
  return places.all + 1;
}

// Writes what is left of a row, the first `count` listed points, as a range a chunk.
template <class E>
__device__ void keep_few(const Node<E>& node, const FewScratch<E>& scratch, int count) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto& list = scratch.list;
  VertexRange* ranges = node.plan.ranges + node.place.row.first_chunk;
  const auto index = [&](int i) { return static_cast<int>(list.index[list.order[i]]); };
  LiveWord live = 0;
  for (int i = lane; i < count; i += 32) {
    const int chunk = index(i) / kLongChunk;
    if (i > 0 && index(i - 1) / kLongChunk == chunk) continue;
    int last = i;
    while (last + 1 < count && index(last + 1) / kLongChunk == chunk) ++last;
    ranges[chunk] = {list.ordinal[list.order[i]],
                     static_cast<std::uint16_t>(list.ordinal[list.order[last]] + 1),
                     static_cast<std::uint16_t>(index(i) % kLongChunk),
                     static_cast<std::uint16_t>(index(last) % kLongChunk)};
    live |= LiveWord{1} << chunk;
  }
  const std::uint32_t low = warp_or(static_cast<std::uint32_t>(live));
  const std::uint32_t high = warp_or(static_cast<std::uint32_t>(live >> 32));
  if (lane == 0) *node.live_word(0) = LiveWord{high} << 32 | low;
}

// Returns whether the row's vertices were few.
template <class E>
__device__ bool merge_few(Node<E>& node, FewScratch<E>& scratch) {
  const int count = gather_few(node, scratch);
  if (count == 0) return false;
  auto& list = scratch.list;
  const ListedTurns<E, decltype(scratch.list)> is_vertex(node, list);
  const auto chunks = static_cast<int>(node.end_chunk);
  if (threadIdx.x % 32 == 0) scratch.joints.bounds[chunks] = count;
  int left = cut_joints_by_warp(list.order, chunks, scratch.joints, is_vertex);
  left = sweep_warp(list.order, left, is_vertex);
  keep_few(node, scratch, left - 1);
  return true;
}

template <class E>
__global__ void __launch_bounds__(32 * kFewWarps) merge_few_chunks(const Plan<E> plan) {
  begin_kernel();
  unsigned char* memory = dynamic_shared();
  auto& scratch = reinterpret_cast<FewShared<E>*>(memory)->warps[threadIdx.x / 32];
  const int i = static_cast<int>(blockIdx.x) * kFewWarps + static_cast<int>(threadIdx.x) / 32;
  if (i >= plan.work->first_chunks) return;
  const std::int64_t id = plan.first_chunks[i];
  LongRowPlace place;
  find_chunk(plan, id, place);
  bool merged = false;
  if (place.row.chunks <= kFanIn && plan.dense_children[node_id(place, 1, 0)] == 0) {
    Node<E> node{plan, place, 1, 0, place.row.chunks, {}};
    merged = merge_few(node, scratch);
  }
  if (threadIdx.x % 32 != 0) return;
  if (merged) {
    note_sole_group(plan, place);
  } else {
    plan.block_nodes[atomicAdd(&plan.work->block_nodes, 1)] = static_cast<std::int32_t>(id);
  }
}

}  // namespace isofold::cuda
