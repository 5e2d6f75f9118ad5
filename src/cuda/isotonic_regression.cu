#include <cuda_runtime.h>

#include <string>

#include "cuda/cuda.hpp"
#include "cuda/device_call.hpp"
#include "cuda/plan.cuh"
#include "cuda/ties.cuh"

namespace isofold::cuda {

template <class E>
std::int64_t shared_bytes();
template <class E>
std::int64_t place_scratch(Plan<E>& plan, void* memory, std::int64_t* zeroed);
template <class E>
cudaError_t launch_isotonic_regression(const Plan<E>& plan, std::int64_t zeroed, void* scratch,
                                       cudaStream_t stream);

namespace {

Status unsupported(const char* what) { return {StatusCode::unsupported, what, -1, -1}; }

Format output_format(DataType type) { return type == DataType::float32 ? kFloat32 : kFloat64; }

template <class V, class W>
Plan<Elements<V, W>> plan_for(const IsotonicProblem& problem, const IsotonicFit& out) {
  using E = Elements<V, W>;
  Plan<E> plan{};
  plan.elements = {static_cast<const V*>(problem.values.data), nullptr, problem.increasing ? 1.0 : -1.0};
  if constexpr (E::kWeighted) plan.elements.weights = static_cast<const W*>(problem.weights.data);
  const DataType type = out.fit.present() ? out.fit.type : problem.values.type;
  plan.output.fit = out.fit.present() ? out.fit.data : nullptr;
  plan.output.to_float32 = type == DataType::float32;
  plan.output.to_input_type = type == problem.values.type;
  plan.output.format = output_format(type);
  plan.output.lower = round_to(problem.lower_bound, plan.output.format);
  plan.output.upper = round_to(problem.upper_bound, plan.output.format);
  plan.output.block_starts = out.block_starts;
  plan.rows = problem.rows.count;
  plan.row_length = problem.rows.length;
  plan.offsets = problem.rows.offsets;
  plan.total = problem.rows.total();
  // Lanes round to the values' type or to float32.
  plan.lane_rows = !E::kWeighted && (type == problem.values.type || type == DataType::float32) ? 1 : 0;
  return plan;
}

// Calls `use` with the plan of the problem's types.
template <class Use>
Status with_plan(const IsotonicProblem& problem, const IsotonicFit& out, Use use) {
  const auto by_weight = [&](auto value) -> Status {
    using V = decltype(value);
    switch (problem.weights.type) {
      case DataType::none:
        return use(plan_for<V, Unweighted>(problem, out));
      case DataType::float32:
        return use(plan_for<V, float>(problem, out));
      case DataType::float64:
        return use(plan_for<V, double>(problem, out));
      default:
        return unsupported("weights: the CUDA executor takes float32 and float64");
    }
  };
  switch (problem.values.type) {
    case DataType::float32:
      return by_weight(float{});
    case DataType::float64:
      return by_weight(double{});
    default:
      return unsupported("values: the CUDA executor takes float32 and float64");
  }
}

Status untied_scratch(const IsotonicProblem& problem, std::int64_t* bytes) {
  return with_plan(problem, {}, [&](auto plan) -> Status {
    std::int64_t zeroed = 0;
    *bytes = place_scratch(plan, nullptr, &zeroed);
    return {};
  });
}

Status fit_untied(const IsotonicProblem& problem, const IsotonicFit& out, const Executor& executor) {
  return with_plan(problem, out, [&]<class E>(Plan<E> plan) -> Status {
    if (Status status = check_device(shared_bytes<E>(), "values and weights"); !status.ok()) return status;
    std::int64_t zeroed = 0;
    const std::int64_t bytes = place_scratch(plan, nullptr, &zeroed);
    return with_scratch(executor, bytes, [&](void* scratch) -> Status {
      place_scratch(plan, scratch, &zeroed);
      const cudaError_t error =
          launch_isotonic_regression(plan, zeroed, scratch, static_cast<cudaStream_t>(executor.stream));
      return error == cudaSuccess ? Status{} : failed(error, "isotonic regression on the device");
    });
  });
}

// What a call with ties takes: first the ordered copies, then what the untied fit takes.
struct TiedScratch {
  std::int64_t ordering = 0;
  std::int64_t fit = 0;
};

Status tied_scratch(const IsotonicProblem& problem, TiedScratch* bytes) {
  // Before the ordering, which knows only the types that pass here.
  if (Status status = untied_scratch(problem, &bytes->fit); !status.ok()) return status;
  if (problem.tie_offsets == nullptr || problem.rows.total() == 0) return {};
  if (problem.rows.total() > kMostTiedElements) {
    return unsupported("tie_offsets: the CUDA executor orders up to 2^35 elements");
  }
  const cudaError_t error = tie_scratch(problem, &bytes->ordering);
  return error == cudaSuccess ? Status{} : failed(error, "CUDA device");
}

}  // namespace

Status isotonic_regression_scratch(const IsotonicProblem& problem, std::int64_t* bytes) {
  TiedScratch both;
  Status status = tied_scratch(problem, &both);
  *bytes = both.ordering + both.fit;
  return status;
}

Status isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out, const Executor& executor) {
  if (out.fit.present() && out.fit.type != DataType::float32 && out.fit.type != DataType::float64) {
    return unsupported("fit: the CUDA executor gives float32 and float64");
  }
  if (problem.rows.total() == 0) return {};
  if (problem.tie_offsets == nullptr) return fit_untied(problem, out, executor);
  TiedScratch both;
  if (Status status = tied_scratch(problem, &both); !status.ok()) return status;
  return with_scratch(executor, both.ordering + both.fit, [&](void* scratch) -> Status {
    IsotonicProblem untied;
    const cudaError_t error =
        order_ties(problem, scratch, static_cast<cudaStream_t>(executor.stream), &untied);
    if (error != cudaSuccess) return failed(error, "tie groups on the device");
    Executor rest = executor;
    rest.scratch = static_cast<unsigned char*>(scratch) + both.ordering;
    rest.scratch_bytes = both.fit;
    return fit_untied(untied, out, rest);
  });
}

}  // namespace isofold::cuda
