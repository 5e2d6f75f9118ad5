// Segment reductions on the device: types, scratch, passes.
#include <cuda_runtime.h>

#include <algorithm>
#include <string>

#include "cuda/cuda.hpp"
#include "cuda/device_call.hpp"
#include "cuda/dot_plan.cuh"

namespace isofold::cuda {

template <class T>
cudaError_t launch_segment_reductions(const DotPlan& plan, int multiprocessors, cudaStream_t stream);

namespace {

constexpr std::int64_t kMostChunks = (std::int64_t{1} << 31) - 1;

DotPlan plan_of(const Rows& segments, std::int64_t pairs) {
  DotPlan plan{};
  plan.pair_count = static_cast<int>(pairs);
  plan.offsets = segments.offsets;
  plan.row_length = segments.length;
  plan.rows = segments.count;
  plan.total = segments.total();
  plan.chunks = std::max<std::int64_t>(1, (plan.total + kDotChunk - 1) / kDotChunk);
  plan.slot_count = pairs * std::min(plan.rows, plan.total / (kExactSlice + 1));
  return plan;
}

// Places the scratch of a pass in `memory`, and returns its size; with none, only that.
std::int64_t place_dot_scratch(DotPlan& plan, void* memory) {
  Carver carver(memory);
  const auto take = [&]<class T>(T*& array, std::int64_t count) { array = carver.take<T>(count); };
  take(plan.faulty_offsets, 1);
  take(plan.undecided_count, 1);
  take(plan.finished_blocks, 1);
  take(plan.heads, plan.chunks * plan.pair_count);
  take(plan.tails, plan.chunks * plan.pair_count);
  take(plan.tail_segment, plan.chunks);
  take(plan.undecided, plan.rows * plan.pair_count);
  take(plan.slots, plan.slot_count);
  return carver.used();
}

std::int64_t scratch_bytes(const Rows& segments, std::int64_t count) {
  DotPlan plan = plan_of(segments, std::min<std::int64_t>(count, kMostPairs));
  return place_dot_scratch(plan, nullptr);
}

cudaError_t launch(const DotPlan& plan, DataType type, int multiprocessors, cudaStream_t stream) {
  switch (type) {
    case DataType::float16:
      return launch_segment_reductions<Float16>(plan, multiprocessors, stream);
    case DataType::bfloat16:
      return launch_segment_reductions<BFloat16>(plan, multiprocessors, stream);
    case DataType::float32:
      return launch_segment_reductions<float>(plan, multiprocessors, stream);
    default:
      return launch_segment_reductions<double>(plan, multiprocessors, stream);
  }
}

}  // namespace

Status segment_reductions_scratch(const Rows& segments, std::int64_t count, std::int64_t* bytes) {
  *bytes = segments.count == 0 ? 0 : scratch_bytes(segments, count);
  return {};
}

Status segment_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments,
                          const Executor& executor, bool prepared) {
  for (std::int64_t r = 0; r < count; ++r) {
    if (reductions[r].value == SegmentValue::dot && reductions[r].b.type != reductions[r].a.type) {
      return {StatusCode::unsupported, "b: the CUDA executor takes arrays of one type, that of a", -1, -1};
    }
  }
  if (segments.count == 0 || count == 0) return {};
  if (plan_of(segments, 1).chunks > kMostChunks) {
    return {StatusCode::unsupported, "rows: the CUDA executor's reductions take up to 2^43 elements", -1, -1};
  }
  int device = 0;
  int multiprocessors = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (error != cudaSuccess) return failed(error, "CUDA device");
  auto* stream = static_cast<cudaStream_t>(executor.stream);
  return with_scratch(executor, scratch_bytes(segments, count), [&](void* scratch) -> Status {
    // Passes of up to three reductions of arrays of one type.
    for (std::int64_t first = 0; first < count;) {
      std::int64_t last = first + 1;
      while (last < count && last - first < kMostPairs &&
             reductions[last].a.type == reductions[first].a.type) {
        ++last;
      }
      DotPlan plan = plan_of(segments, last - first);
      place_dot_scratch(plan, scratch);
      // The passes of a call come after each other in the same scratch.
      plan.prepared = prepared || first > 0 ? 1 : 0;
      for (std::int64_t r = first; r < last; ++r) {
        const SegmentReduction& reduction = reductions[r];
        const bool root = reduction.value == SegmentValue::norm;
        plan.pairs[r - first] = {reduction.a.data, root ? reduction.a.data : reduction.b.data,
                                 reduction.out.data, reduction.out.type, root ? 1 : 0};
      }
      error = launch(plan, reductions[first].a.type, multiprocessors, stream);
      if (error != cudaSuccess) return failed(error, "segment reductions on the device");
      first = last;
    }
    return {};
  });
}

}  // namespace isofold::cuda
