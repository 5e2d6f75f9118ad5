// The public segment reductions: check, choose the executor, word the outcome.
#include "isofold/segmented.hpp"

#include <string>

#include "api/checks.hpp"
#include "api/guarded.hpp"
#include "cpu/cpu.hpp"
#include "cuda/cuda.hpp"
#include "reference/reference.hpp"

namespace isofold {
namespace {

constexpr std::int64_t kMostReductions = 16;

Status missing(const std::string& argument) {
  return api::fault(StatusCode::invalid_argument, argument + ": null pointer");
}

Status check_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments) {
  if (count < 0 || count > kMostReductions) {
    return api::fault(
        StatusCode::invalid_argument,
        "count must be from 0 to " + std::to_string(kMostReductions) + ": " + std::to_string(count));
  }
  if (count > 0 && reductions == nullptr) return missing("reductions");
  for (std::int64_t r = 0; r < count; ++r) {
    const SegmentReduction& reduction = reductions[r];
    const std::string which = count == 1 ? "" : "reduction " + std::to_string(r) + ", ";
    const auto absent = [&](const char* name) {
      return api::fault(StatusCode::invalid_argument, which + name + ": no array given");
    };
    const bool dot = reduction.value == SegmentValue::dot;
    if (!reduction.a.present()) return absent("a");
    if (dot && !reduction.b.present()) return absent("b");
    if (!dot && reduction.b.present()) {
      return api::fault(StatusCode::invalid_argument, which + "b: only a dot product has a second array");
    }
    if (!reduction.out.present()) return absent("out");
    if (segments.total() > 0 && reduction.a.data == nullptr) return missing(which + "a");
    if (segments.total() > 0 && dot && reduction.b.data == nullptr) return missing(which + "b");
    if (segments.count > 0 && reduction.out.data == nullptr) return missing(which + "out");
  }
  return {};
}

Status one(SegmentValue value, ConstArray a, ConstArray b, const Rows& segments, MutableArray out,
           const Executor& executor) {
  const SegmentReduction reduction{value, a, b, out};
  return segment_reductions(&reduction, 1, segments, executor);
}

}  // namespace

Status segment_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments,
                          const Executor& executor) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_executor(executor); !status.ok()) return status;
    const bool on_device = executor.backend == Backend::cuda;
    if (Status status = on_device ? api::check_device_rows(segments) : api::check_rows(segments);
        !status.ok()) {
      return status;
    }
    if (Status status = check_reductions(reductions, count, segments); !status.ok()) return status;
    if (on_device) return cuda::segment_reductions(reductions, count, segments, executor);
    const Outcome outcome = executor.backend == Backend::reference
                                ? reference::segment_reductions(reductions, count, segments)
                                : cpu::segment_reductions(reductions, count, segments, executor);
    if (outcome == Outcome::interrupted) {
      return api::fault(StatusCode::interrupted, "interrupted by the caller");
    }
    return {};
  });
}

Status segment_sum(ConstArray a, const Rows& segments, MutableArray out, const Executor& executor) {
  return one(SegmentValue::sum, a, {}, segments, out, executor);
}

Status segment_dot(ConstArray a, ConstArray b, const Rows& segments, MutableArray out,
                   const Executor& executor) {
  return one(SegmentValue::dot, a, b, segments, out, executor);
}

Status segment_norm(ConstArray a, const Rows& segments, MutableArray out, const Executor& executor) {
  return one(SegmentValue::norm, a, {}, segments, out, executor);
}

Status segment_reductions_scratch(const Rows& segments, std::int64_t count, std::int64_t* bytes) {
  return api::guarded([&]() -> Status {
    if (Status status = api::check_device_rows(segments); !status.ok()) return status;
    return cuda::segment_reductions_scratch(segments, count, bytes);
  });
}

}  // namespace isofold
