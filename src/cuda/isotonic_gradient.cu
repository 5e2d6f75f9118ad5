// The gradient of a fit on the device: types, scratch, launches.
#include <cuda_runtime.h>

#include <cmath>
#include <string>

#include "cuda/cuda.hpp"
#include "cuda/device_call.hpp"
#include "cuda/gradient_plan.cuh"

namespace isofold::cuda {

template <class I>
cudaError_t launch_isotonic_gradient(const GradientPlan<I>& plan, cudaStream_t stream);
template <class I>
std::int64_t gradient_shared_bytes();

namespace {

constexpr std::int64_t kMostChunks = (std::int64_t{1} << 31) - 1;

Status not_taken(const char* what) {
  return {StatusCode::unsupported, std::string(what) + ": the CUDA executor takes float32 and float64", -1,
          -1};
}

bool taken(DataType type) { return type == DataType::float32 || type == DataType::float64; }

Status check_types(const IsotonicProblem& problem) {
  if (!taken(problem.values.type)) return not_taken("values");
  if (problem.weights.present() && !taken(problem.weights.type)) return not_taken("weights");
  return {};
}

std::int64_t chunks_of(const IsotonicProblem& problem) {
  return (problem.rows.total() + kGradientChunk - 1) / kGradientChunk;
}

// Places the scratch of `chunks` chunks in `memory`, and returns its size; with none, only that.
template <class I>
std::int64_t place_gradient_scratch(GradientPlan<I>& plan, void* memory) {
  Carver carver(memory);
  const auto take = [&]<class T>(T*& array, std::int64_t count) { array = carver.take<T>(count); };
  const std::int64_t chunks = plan.chunks;
  take(plan.faulty_offsets, 1);
  take(plan.pieces, chunks);
  take(plan.groups, chunks / kGradientGroup);
  take(plan.spans, chunks);
  take(plan.owner, chunks);
  take(plan.head_unfinished, chunks);
  take(plan.tail_unfinished, chunks);
  take(plan.span_unfinished, chunks);
  return carver.used();
}

std::int64_t scratch_bytes(const IsotonicProblem& problem) {
  GradientPlan<GradientInput<float, Unweighted, float>> plan{};  // the types do not matter
  plan.chunks = chunks_of(problem);
  return place_gradient_scratch(plan, nullptr);
}

struct GradientCall {
  const IsotonicProblem& problem;
  const std::uint8_t* block_starts;
  ConstArray gradient;
  const IsotonicGradient& out;
};

template <class I>
GradientPlan<I> gradient_plan(const GradientCall& call) {
  const IsotonicProblem& problem = call.problem;
  GradientPlan<I> plan{};
  plan.input.values = static_cast<const typename I::Value*>(problem.values.data);
  if constexpr (I::kWeighted) {
    plan.input.weights = static_cast<const typename I::Weight*>(problem.weights.data);
  }
  plan.input.gradient = static_cast<const typename I::Gradient*>(call.gradient.data);
  plan.block_starts = call.block_starts;
  plan.total = problem.rows.total();
  plan.chunks = chunks_of(problem);
  const auto array = [](const MutableArray& wanted) {
    return GradientArray{wanted.present() ? wanted.data : nullptr,
                         static_cast<int>(wanted.type == DataType::float32)};
  };
  plan.values = array(call.out.values);
  plan.weights = array(call.out.weights);
  plan.bounded = static_cast<int>(std::isfinite(problem.lower_bound) || std::isfinite(problem.upper_bound));
  plan.fit_to_float32 = static_cast<int>(problem.values.type == DataType::float32);
  const Format format = gradient_format(plan.fit_to_float32 != 0);
  plan.lower = round_to(problem.lower_bound, format);
  plan.upper = round_to(problem.upper_bound, format);
  plan.offsets = problem.rows.offsets;
  plan.rows = problem.rows.count;
  return plan;
}

// Calls `use` with the plan of the call's types, which have been checked.
template <class Use>
Status with_gradient_plan(const GradientCall& call, Use use) {
  const auto by_gradient = [&]<class V, class W>(V, W) -> Status {
    if (call.gradient.type == DataType::float32) return use(gradient_plan<GradientInput<V, W, float>>(call));
    return use(gradient_plan<GradientInput<V, W, double>>(call));
  };
  const auto by_weight = [&]<class V>(V value) -> Status {
    if (!call.problem.weights.present()) return by_gradient(value, Unweighted{});
    if (call.problem.weights.type == DataType::float32) return by_gradient(value, float{});
    return by_gradient(value, double{});
  };
  return call.problem.values.type == DataType::float32 ? by_weight(float{}) : by_weight(double{});
}

}  // namespace

Status isotonic_gradient_scratch(const IsotonicProblem& problem, std::int64_t* bytes) {
  if (Status status = check_types(problem); !status.ok()) return status;
  *bytes = scratch_bytes(problem);
  return {};
}

Status isotonic_gradient(const IsotonicProblem& problem, const std::uint8_t* block_starts,
                         ConstArray gradient, const IsotonicGradient& out, const Executor& executor) {
  if (Status status = check_types(problem); !status.ok()) return status;
  if (!taken(gradient.type)) return not_taken("gradient");
  if (out.values.present() && !taken(out.values.type)) return not_taken("out.values");
  if (out.weights.present() && !taken(out.weights.type)) return not_taken("out.weights");
  if (problem.rows.total() == 0 || !(out.values.present() || out.weights.present())) return {};
  if (chunks_of(problem) > kMostChunks) {
    return {StatusCode::unsupported, "rows: the CUDA executor's gradient takes up to 2^43 elements", -1, -1};
  }
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  return with_gradient_plan({problem, block_starts, gradient, out}, [&]<class I>(GradientPlan<I> plan) {
    if (Status status = check_device(gradient_shared_bytes<I>(), "gradients"); !status.ok()) return status;
    return with_scratch(executor, scratch_bytes(problem), [&](void* scratch) -> Status {
      place_gradient_scratch(plan, scratch);
      const cudaError_t error = launch_isotonic_gradient(plan, stream);
      return error == cudaSuccess ? Status{} : failed(error, "isotonic gradient on the device");
    });
  });
}

}  // namespace isofold::cuda
