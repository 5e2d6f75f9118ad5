// What a warp does to one feature of one node: every candidate's gain, lanes side by side.
//
// The gains come from the functions that the CPU executor calls, on sums that are integers; a prefix is the
// same however it is put together. Candidates are compared in a total order, so any tree of comparisons will
// do.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "algorithm/split_scan.hpp"

namespace isofold::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffU;
inline constexpr int kBinsALane = 4;
inline constexpr int kBinsAWarp = 32 * kBinsALane;

__device__ inline LeafSums from_lane(const LeafSums& mine, int lane) {
  return {static_cast<std::int64_t>(__shfl_sync(kAllLanes, static_cast<long long>(mine.gradient), lane)),
          static_cast<std::int64_t>(__shfl_sync(kAllLanes, static_cast<long long>(mine.hessian), lane)),
          __shfl_sync(kAllLanes, mine.count, lane)};
}

__device__ inline LeafSums from_below(const LeafSums& mine, int step) {
  return {static_cast<std::int64_t>(__shfl_up_sync(kAllLanes, static_cast<long long>(mine.gradient), step)),
          static_cast<std::int64_t>(__shfl_up_sync(kAllLanes, static_cast<long long>(mine.hessian), step)),
          __shfl_up_sync(kAllLanes, mine.count, step)};
}

// What the lanes up to this one have.
__device__ inline LeafSums prefix(LeafSums mine, int lane) {
  for (int step = 1; step < 32; step *= 2) {
    const LeafSums below = from_below(mine, step);
    if (lane >= step) mine = mine + below;
  }
  return mine;
}

__device__ inline LeafSums warp_total(const LeafSums& mine, int lane) {
  return from_lane(prefix(mine, lane), 31);
}

__device__ inline double warp_highest(double mine) {
  for (int step = 16; step > 0; step /= 2) {
    const double other = __shfl_xor_sync(kAllLanes, mine, step);
    mine = other > mine ? other : mine;
  }
  return mine;
}
__device__ inline std::int32_t warp_lowest(std::int32_t mine) {
  for (int step = 16; step > 0; step /= 2) {
    const std::int32_t other = __shfl_xor_sync(kAllLanes, mine, step);
    mine = other < mine ? other : mine;
  }
  return mine;
}

__device__ inline Candidate warp_best(Candidate mine, TiePolicy ties, ScanKind kind) {
  for (int step = 16; step > 0; step /= 2) {
    Candidate other;
    other.gain = __shfl_xor_sync(kAllLanes, mine.gain, step);
    other.direction = __shfl_xor_sync(kAllLanes, mine.direction, step);
    other.bin = __shfl_xor_sync(kAllLanes, mine.bin, step);
    if (other.found() && (!mine.found() || comes_before(other, mine, ties, kind))) mine = other;
  }
  return mine;
}

// Four neighbouring bins, in wide loads where they are aligned.
struct alignas(16) TwoSums {
  std::int64_t a;
  std::int64_t b;
};
struct alignas(16) FourCounts {
  std::int32_t a;
  std::int32_t b;
  std::int32_t c;
  std::int32_t d;
};

__device__ inline bool aligned(const FeatureView& view) {
  const auto low_bits = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16; };
  return low_bits(view.gradients) == 0 && low_bits(view.hessians) == 0 && low_bits(view.counts) == 0;
}

__device__ inline void load_bins(const FeatureView& view, std::int32_t first, std::int32_t end, bool wide,
                                 LeafSums (&sums)[kBinsALane]) {
  if (wide && first + kBinsALane <= end) {
    const auto* gradients = reinterpret_cast<const TwoSums*>(view.gradients + first);
    const auto* hessians = reinterpret_cast<const TwoSums*>(view.hessians + first);
    const TwoSums g0 = gradients[0];
    const TwoSums g1 = gradients[1];
    const TwoSums h0 = hessians[0];
    const TwoSums h1 = hessians[1];
    const FourCounts n = *reinterpret_cast<const FourCounts*>(view.counts + first);
    sums[0] = {g0.a, h0.a, n.a};
    sums[1] = {g0.b, h0.b, n.b};
    sums[2] = {g1.a, h1.a, n.c};
    sums[3] = {g1.b, h1.b, n.d};
    return;
  }
  for (int k = 0; k < kBinsALane; ++k) {
    sums[k] = first + k < end ? view.bin(first + k) : LeafSums{};
  }
}

// One warp's search: who is asked to visit candidates does so in all lanes, each its own.
struct WarpScan {
  const ScaledRules& rules;
  const NodeState& node;
  const FeatureView& view;
  std::int32_t only;    // the one candidate that may be taken, or -1
  std::int32_t* order;  // categories that join subsets, in order; shared by the warp
  std::int32_t joining;
  int lane;

  template <class Visit>
  __device__ void visit_thresholds(const Visit& visit) const {
    const bool wide = aligned(view);
    for (std::int32_t direction = 0; direction < 2; ++direction) {
      const std::int32_t count = thresholds(view, direction);
      LeafSums before = direction == 0 ? view.missing() : LeafSums{};
      for (std::int32_t base = 0; base < count; base += kBinsAWarp) {
        LeafSums sums[kBinsALane];
        const std::int32_t first = base + lane * kBinsALane;
        load_bins(view, first, view.values, wide, sums);
        for (int k = 1; k < kBinsALane; ++k) sums[k] = sums[k] + sums[k - 1];
        const LeafSums inclusive = prefix(sums[kBinsALane - 1], lane);
        const LeafSums exclusive = before + (inclusive - sums[kBinsALane - 1]);
        for (int k = 0; k < kBinsALane; ++k) {
          const std::int32_t bin = first + k;
          if (bin >= count || (only >= 0 && bin != only)) continue;
          visit(Candidate{candidate_gain(rules, node, view, exclusive + sums[k], direction), direction, bin});
        }
        before = before + from_lane(inclusive, 31);
      }
    }
  }

  // Candidates that are not valid may come too; their gain is kNoGain.
  template <class Visit>
  __device__ void visit_all(const Visit& visit) const {
    if (view.kind == ScanKind::numerical) {
      visit_thresholds(visit);
    } else if (view.kind == ScanKind::one_hot) {
      for (std::int32_t bin = lane; bin < view.values; bin += 32) {
        if (only >= 0 && bin != only) continue;
        visit(Candidate{candidate_gain(rules, node, view, view.bin(bin), 0), 0, bin});
      }
    } else if (lane < 2) {
      visit_subsets(rules, node, view, order, joining, only, lane, visit);
    }
  }

  [[nodiscard]] __device__ std::int32_t bin_at(const Candidate& candidate, std::int32_t i) const {
    if (view.kind != ScanKind::subset) return i;
    return order[candidate.direction == 0 ? i : joining - 1 - i];
  }

  [[nodiscard]] __device__ LeafSums left_of(const Candidate& candidate) const {
    if (view.kind == ScanKind::one_hot) return view.bin(candidate.bin);
    LeafSums mine;
    for (std::int32_t i = lane; i <= candidate.bin; i += 32) mine = mine + view.bin(bin_at(candidate, i));
    const LeafSums sums = warp_total(mine, lane);
    return view.kind == ScanKind::numerical && candidate.direction == 0 ? sums + view.missing() : sums;
  }
};

// The categories that join subsets, each put at its rank; returns how many there are. `ratios` and `order`
// are the warp's, of at least as many entries as the feature has bins.
__device__ inline std::int32_t sort_categories(const ScaledRules& rules, const FeatureView& view,
                                               double* ratios, std::int32_t* order, int lane) {
  std::int32_t joining = 0;
  for (std::int32_t base = 0; base < view.values; base += 32) {
    const std::int32_t bin = base + lane;
    const bool joins = bin < view.values && joins_subsets(rules, view.counts[bin]);
    if (bin < view.values) ratios[bin] = joins ? category_ratio(rules, view.bin(bin)) : 0.0;
    joining += __popc(__ballot_sync(kAllLanes, static_cast<int>(joins)));
  }
  __syncwarp();
  for (std::int32_t bin = lane; bin < view.values; bin += 32) {
    if (!joins_subsets(rules, view.counts[bin])) continue;
    const double mine = ratios[bin];
    std::int32_t rank = 0;
    for (std::int32_t other = 0; other < view.values; ++other) {
      if (!joins_subsets(rules, view.counts[other])) continue;
      const double ratio = ratios[other];
      rank += static_cast<std::int32_t>(ratio != mine ? ratio < mine : other < bin);
    }
    order[rank] = bin;
  }
  __syncwarp();
  return joining;
}

}  // namespace isofold::cuda
