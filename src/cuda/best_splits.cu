// Best splits on the device: rules, nodes, a warp for each feature of each node, a warp for each node.
#include <cuda_runtime.h>

#include <algorithm>

#include "cuda/device_call.hpp"
#include "cuda/split_warp.cuh"
#include "cuda/start_kernel.cuh"
#include "cuda/team.cuh"
#include "cuda/trees.hpp"

namespace isofold::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = 32 * kWarps;

struct SplitPlan {
  HistogramArrays histogram;
  std::int32_t nodes;
  std::int32_t features;
  std::int32_t bin_count;
  std::int32_t categories;  // entries of a warp's shared arrays
  std::int32_t top_k;
  const FeatureRules* feature_rules;
  const std::uint8_t* feature_mask;
  const double* parent_outputs;
  const double* output_bounds;
  const std::int64_t* node_numbers;
  ScaledRules* rules;
  NodeState* states;
  FeatureBest* best;  // nodes x features
  Split* out;
  std::uint32_t* left_bins;
};

__global__ void set_rules(const SplitRules rules, const GradientGrid grid, const GradientGrid* device_grid,
                          ScaledRules* out) {
  begin_kernel();
  if (threadIdx.x != 0) return;
  GradientGrid used = device_grid != nullptr ? *device_grid : grid;
  const bool refused = used.fault != 0 || !sound(used);
  if (refused) used = {0, 0, 0};
  ScaledRules scaled_rules = scale_rules(rules, used);
  // No side has that many rows, so there is no split.
  if (refused) scaled_rules.min_data = 0x7fffffff;
  *out = scaled_rules;
}

__global__ void __launch_bounds__(kThreads) sum_nodes(const SplitPlan plan) {
  begin_kernel();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (n >= plan.nodes) return;
  LeafSums mine;
  if (plan.features > 0) {
    const std::int64_t base = n * plan.features * plan.bin_count;
    for (std::int32_t b = lane; b < plan.bin_count; b += 32) {
      mine = mine + LeafSums{plan.histogram.gradients[base + b], plan.histogram.hessians[base + b],
                             plan.histogram.counts[base + b]};
    }
  }
  const LeafSums total = warp_total(mine, lane);
  if (lane != 0) return;
  plan.states[n] =
      make_node(*plan.rules, total, plan.parent_outputs != nullptr ? plan.parent_outputs + n : nullptr,
                plan.output_bounds != nullptr ? plan.output_bounds + 2 * n : nullptr);
}

__device__ FeatureView view_of(const SplitPlan& plan, const ScaledRules& rules, std::int64_t n,
                               std::int32_t feature) {
  FeatureRules all;
  all.bins = plan.bin_count;
  const std::int64_t base = (n * plan.features + feature) * plan.bin_count;
  return feature_view(plan.histogram, base, plan.bin_count,
                      plan.feature_rules != nullptr ? plan.feature_rules[feature] : all, rules);
}

// Calls use(scan) for one feature of one node; all lanes of the warp come here.
template <class Use>
__device__ void with_scan(const SplitPlan& plan, const ScaledRules& rules, const NodeState& node,
                          std::int64_t n, std::int32_t feature, const Use& use) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const FeatureView view = view_of(plan, rules, n, feature);
  // The doubles of all warps first, for their alignment.
  auto* ratios = reinterpret_cast<double*>(dynamic_shared()) + warp * plan.categories;
  auto* order = reinterpret_cast<std::int32_t*>(reinterpret_cast<double*>(dynamic_shared()) +
                                                kWarps * plan.categories) +
                warp * plan.categories;
  const std::int32_t joining =
      view.kind == ScanKind::subset ? sort_categories(rules, view, ratios, order, lane) : 0;
  const std::int64_t number = plan.node_numbers != nullptr ? plan.node_numbers[n] : n;
  const std::int32_t only = drawn(rules, number, feature, drawn_from(view, most_in_subset(rules, joining)));
  use(WarpScan{rules, node, view, only, order, joining, lane});
  __syncwarp();  // before the arrays are filled anew
}

__global__ void __launch_bounds__(kThreads) search_features(const SplitPlan plan) {
  begin_kernel();
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (item >= std::int64_t{plan.nodes} * plan.features) return;
  const std::int64_t n = item / plan.features;
  const auto feature = static_cast<std::int32_t>(item - n * plan.features);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  if (plan.feature_mask != nullptr && plan.feature_mask[item] == 0) {
    if (lane == 0) plan.best[item] = FeatureBest{};
    return;
  }
  const ScaledRules rules = *plan.rules;
  const NodeState node = plan.states[n];
  with_scan(plan, rules, node, n, feature, [&](const WarpScan& scan) {
    Candidate best;
    scan.visit_all([&](const Candidate& candidate) {
      if (!candidate.found()) return;
      if (!best.found() || comes_before(candidate, best, rules.ties, scan.view.kind)) best = candidate;
    });
    best = warp_best(best, rules.ties, scan.view.kind);
    if (lane == 0) plan.best[item] = feature_best(node, best);
  });
}

// The feature that comes next after (gain, feature) in the order of a node's features; -1: none is left.
struct Ranked {
  double gain;
  std::int32_t feature;
};

__device__ Ranked next_ranked(const SplitPlan& plan, std::int64_t n, const Ranked& after, int lane) {
  Ranked mine{kNoGain, -1};
  for (std::int32_t f = lane; f < plan.features; f += 32) {
    const double gain = plan.best[n * plan.features + f].gain;
    if (!(gain > kNoGain)) continue;
    if (after.feature >= 0 && !feature_before(after.gain, after.feature, gain, f)) continue;
    if (mine.feature < 0 || feature_before(gain, f, mine.gain, mine.feature)) mine = {gain, f};
  }
  for (int step = 16; step > 0; step /= 2) {
    const double gain = __shfl_xor_sync(kAllLanes, mine.gain, step);
    const std::int32_t feature = __shfl_xor_sync(kAllLanes, mine.feature, step);
    if (feature >= 0 && (mine.feature < 0 || feature_before(gain, feature, mine.gain, mine.feature))) {
      mine = {gain, feature};
    }
  }
  return mine;
}

struct Run {
  std::int32_t first;
  std::int32_t last;
};

// The neighbouring thresholds that tie with the winner: up to the nearest that does not, on either side.
__device__ Run plateau_of(const WarpScan& scan, const Candidate& winner) {
  if (scan.view.kind != ScanKind::numerical) return {winner.bin, winner.bin};
  if (scan.only >= 0) return {winner.bin, winner.bin};
  std::int32_t above = thresholds(scan.view, winner.direction);
  std::int32_t below = 1;  // the negative of a bin: the lowest of these is the highest of those
  scan.visit_all([&](const Candidate& candidate) {
    if (candidate.direction != winner.direction || candidate.gain == winner.gain) return;
    if (candidate.bin > winner.bin && candidate.bin < above) above = candidate.bin;
    if (candidate.bin < winner.bin && -candidate.bin < below) below = -candidate.bin;
  });
  return {1 - warp_lowest(below), warp_lowest(above) - 1};
}

__global__ void __launch_bounds__(kThreads) finish_nodes(const SplitPlan plan) {
  begin_kernel();
  const std::int64_t n = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (n >= plan.nodes) return;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const ScaledRules rules = *plan.rules;
  const NodeState node = plan.states[n];
  const std::int32_t words = (plan.bin_count + 31) / 32;
  Ranked ranked{kNoGain, -1};
  Ranked next = next_ranked(plan, n, ranked, lane);
  for (std::int32_t k = 0; k < plan.top_k; ++k) {
    const std::int64_t at = n * plan.top_k + k;
    std::uint32_t* bits = plan.left_bins != nullptr ? plan.left_bins + at * words : nullptr;
    if (bits != nullptr) {
      for (std::int32_t word = lane; word < words; word += 32) bits[word] = 0;
    }
    ranked = next;
    if (ranked.feature < 0) {
      if (lane == 0) plan.out[at] = Split{};
      continue;
    }
    next = next_ranked(plan, n, ranked, lane);
    FeatureBest best = plan.best[n * plan.features + ranked.feature];
    with_scan(plan, rules, node, n, ranked.feature, [&](const WarpScan& scan) {
      const Run plateau = plateau_of(scan, best.candidate);
      if (rules.ties == TiePolicy::middle) {
        best.candidate.bin = plateau.first + (plateau.last - plateau.first) / 2;
      }
      const Candidate& winner = best.candidate;
      double runner_up = next.feature >= 0 ? next.gain : kNoGain;
      scan.visit_all([&](const Candidate& candidate) {
        if (!candidate.found()) return;
        if (candidate.direction == winner.direction && candidate.bin >= plateau.first &&
            candidate.bin <= plateau.last) {
          return;
        }
        const double gain = candidate.gain - node.shift;
        runner_up = gain > runner_up ? gain : runner_up;
      });
      runner_up = warp_highest(runner_up);
      const LeafSums left = scan.left_of(winner);
      __syncwarp();
      if (lane != 0) return;
      Split split = describe(rules, node, scan.view, ranked.feature, best, left, runner_up);
      split.plateau_first = plateau.first;
      split.plateau_last = plateau.last;
      plan.out[at] = split;
      if (bits == nullptr || scan.view.kind == ScanKind::numerical) return;
      const std::int32_t first = scan.view.kind == ScanKind::one_hot ? winner.bin : 0;
      for (std::int32_t i = first; i <= winner.bin; ++i) {
        const std::int32_t bin = scan.bin_at(winner, i);
        bits[bin / 32] |= 1U << (bin % 32);
      }
    });
  }
}

std::int64_t place_scratch(SplitPlan& plan, void* memory) {
  Carver carver(memory);
  plan.rules = carver.take<ScaledRules>(1);
  plan.states = carver.take<NodeState>(plan.nodes);
  plan.best = carver.take<FeatureBest>(std::int64_t{plan.nodes} * plan.features);
  return carver.used();
}

unsigned blocks_for(std::int64_t warps) { return static_cast<unsigned>((warps + kWarps - 1) / kWarps); }

}  // namespace

Status best_splits(const SplitProblem& problem, Split* out, std::uint32_t* left_bins,
                   const Executor& executor) {
  if (problem.nodes == 0) return {};
  const std::int64_t items = std::int64_t{problem.nodes} * problem.features;
  if (items / kWarps >= (std::int64_t{1} << 31) - 1) {
    return {StatusCode::unsupported, "nodes: too many nodes times features for one call on the CUDA executor",
            -1, -1};
  }
  SplitPlan plan{};
  plan.histogram = problem.histogram;
  plan.nodes = problem.nodes;
  plan.features = problem.features;
  plan.bin_count = problem.bin_count;
  plan.top_k = problem.top_k;
  plan.feature_rules = problem.feature_rules;
  plan.feature_mask = problem.feature_mask;
  plan.parent_outputs = problem.parent_outputs;
  plan.output_bounds = problem.output_bounds;
  plan.node_numbers = problem.node_numbers;
  plan.out = out;
  plan.left_bins = left_bins;
  // Without rules of features there is nothing categorical. An even number keeps the doubles' alignment.
  plan.categories =
      problem.feature_rules == nullptr ? 0 : (std::min(problem.bin_count, kMostCategories) + 1) / 2 * 2;
  const std::size_t shared =
      static_cast<std::size_t>(kWarps * plan.categories) * (sizeof(double) + sizeof(std::int32_t));
  const auto attribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  constexpr int kMostShared = kWarps * kMostCategories * 12;
  cudaError_t error = cudaFuncSetAttribute(search_features, attribute, kMostShared);
  if (error == cudaSuccess) error = cudaFuncSetAttribute(finish_nodes, attribute, kMostShared);
  if (error != cudaSuccess) return failed(error, "best splits on the device");
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  return with_scratch(executor, place_scratch(plan, nullptr), [&](void* scratch) -> Status {
    place_scratch(plan, scratch);
    start_kernel(set_rules, 1, 32, 0, stream, problem.rules, problem.grid, problem.device_grid, plan.rules);
    start_kernel(sum_nodes, blocks_for(plan.nodes), kThreads, 0, stream, plan);
    if (items > 0) start_kernel(search_features, blocks_for(items), kThreads, shared, stream, plan);
    start_kernel(finish_nodes, blocks_for(plan.nodes), kThreads, shared, stream, plan);
    const cudaError_t failure = cudaGetLastError();
    return failure == cudaSuccess ? Status{} : failed(failure, "best splits on the device");
  });
}

}  // namespace isofold::cuda
