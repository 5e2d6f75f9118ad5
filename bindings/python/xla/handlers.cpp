// Fits and gradients as XLA custom calls, for isofold.jax. On a CPU they run on the thread that XLA calls
// from; for CUDA they enqueue work on XLA's stream, with XLA's memory for scratch, so that XLA may record
// them in a command buffer. No Python is called, and nothing is kept between calls.
//
// XLA's arrays are dense and row-major: rows run along the last dimension.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "../xla.hpp"
#include "isofold/isotonic.hpp"
#include "refusals.hpp"
#include "xla/ffi/api/ffi.h"

namespace isofold::python {
namespace {

namespace ffi = xla::ffi;

using Array = ffi::AnyBuffer;
using Out = ffi::Result<ffi::AnyBuffer>;

DataType data_type(ffi::DataType type) {
  switch (type) {
    case ffi::F16:
      return DataType::float16;
    case ffi::BF16:
      return DataType::bfloat16;
    case ffi::F32:
      return DataType::float32;
    case ffi::F64:
      return DataType::float64;
    default:
      return DataType::none;
  }
}

ConstArray view(const Array& array) { return {array.untyped_data(), data_type(array.element_type())}; }
MutableArray view(Out& array) { return {array->untyped_data(), data_type(array->element_type())}; }
std::int64_t size(const Array& array) { return static_cast<std::int64_t>(array.element_count()); }

ffi::Error fault(const std::string& message) {
  return {ffi::ErrorCode::kInvalidArgument, "isofold: " + message};
}

ffi::Error report(const Status& status) {
  switch (status.code) {
    case StatusCode::ok:
      return ffi::Error::Success();
    case StatusCode::out_of_memory:
      return {ffi::ErrorCode::kResourceExhausted, "isofold: " + status.message};
    case StatusCode::unsupported:
      return {ffi::ErrorCode::kUnimplemented, "isofold: " + status.message};
    case StatusCode::device_error:
    case StatusCode::interrupted:
      return {ffi::ErrorCode::kInternal, "isofold: " + status.message};
    default:
      return fault(status.message);
  }
}

// The arguments of a call that are not always there, in order, and whether all are of the right kind.
class Optional {
 public:
  explicit Optional(ffi::RemainingArgs rest) : rest_(rest) {}
  std::optional<Array> next(bool present) {
    if (!present) return std::nullopt;
    auto found = rest_.get<Array>(at_++);
    if (!found.has_value()) {
      complete_ = false;
      return std::nullopt;
    }
    return *found;
  }
  [[nodiscard]] bool complete() const { return complete_ && at_ == rest_.size(); }

 private:
  ffi::RemainingArgs rest_;
  std::size_t at_ = 0;
  bool complete_ = true;
};

bool refused(const Status& status) {
  return status.code == StatusCode::not_finite || status.code == StatusCode::weight_not_positive;
}

Executor on_stream(void* stream, Out& scratch) {
  Executor executor;
  executor.backend = Backend::cuda;
  executor.stream = stream;
  std::size_t space = scratch->size_bytes();
  void* memory = scratch->untyped_data();
  executor.scratch = std::align(kXlaScratchAlignment, 0, memory, space);
  executor.scratch_bytes = static_cast<std::int64_t>(space);
  return executor;
}

// ---- Fit: values, [weights], [offsets] -> fit, block starts, [scratch] ----

ffi::Error make_fit_problem(const Array& values, ffi::RemainingArgs rest, std::int64_t row_length,
                            bool weighted, bool ragged, bool increasing, bool on_device,
                            IsotonicProblem* problem) {
  Optional optional(rest);
  const std::optional<Array> weights = optional.next(weighted);
  const std::optional<Array> offsets = optional.next(ragged);
  if (!optional.complete()) return fault("the call's arguments are not those of a fit");
  const std::int64_t total = size(values);
  problem->values = view(values);
  problem->increasing = increasing;
  if (weights) {
    if (size(*weights) != total) return fault("weights are not as many as values");
    problem->weights = view(*weights);
  }
  if (!offsets) {
    if (row_length < 1 || total % row_length != 0) return fault("rows are not of one length");
    problem->rows = Rows::rectangle(total / row_length, row_length);
    return ffi::Error::Success();
  }
  const std::int64_t rows = size(*offsets) - 1;
  if (offsets->element_type() != ffi::S64 || rows < 0) return fault("offsets are not int64");
  const auto* cuts = static_cast<const std::int64_t*>(offsets->untyped_data());
  if (on_device) {
    problem->rows = Rows::ragged_on_device(cuts, rows, total);
  } else {
    if (cuts[rows] != total) return fault("offsets must rise from 0 to the number of elements");
    problem->rows = Rows::ragged(cuts, rows);
  }
  return ffi::Error::Success();
}

ffi::Error check_fit(const Array& values, Out& fit, Out& starts) {
  if (size(*fit) != size(values) || size(*starts) != size(values) || starts->element_type() != ffi::U8) {
    return fault("the call's results are not those of a fit");
  }
  return ffi::Error::Success();
}

IsotonicFit fit_outputs(Out& fit, Out& starts) {
  return {view(fit), static_cast<std::uint8_t*>(starts->untyped_data())};
}

ffi::Error fit_on_host(Array values, ffi::RemainingArgs rest, Out fit, Out starts, std::int64_t row_length,
                       bool weighted, bool ragged, bool increasing) {
  IsotonicProblem problem;
  if (ffi::Error error =
          make_fit_problem(values, rest, row_length, weighted, ragged, increasing, false, &problem);
      error.failure()) {
    return error;
  }
  if (ffi::Error error = check_fit(values, fit, starts); error.failure()) return error;
  const IsotonicFit out = fit_outputs(fit, starts);
  const Status status = isotonic_regression(problem, out);
  if (!refused(status)) return report(status);
  Refusals refusals = Refusals::of_rows(problem);
  const Status mended = isotonic_regression(refusals.harmless(problem), out);
  refusals.refuse(out.fit);
  return report(mended);
}

ffi::Error fit_on_device(void* stream, Array values, ffi::RemainingArgs rest, Out fit, Out starts,
                         Out scratch, std::int64_t row_length, bool weighted, bool ragged, bool increasing) {
  IsotonicProblem problem;
  if (ffi::Error error =
          make_fit_problem(values, rest, row_length, weighted, ragged, increasing, true, &problem);
      error.failure()) {
    return error;
  }
  if (ffi::Error error = check_fit(values, fit, starts); error.failure()) return error;
  return report(isotonic_regression(problem, fit_outputs(fit, starts), on_stream(stream, scratch)));
}

// ---- Gradient: incoming, values, block starts, [weights] -> [for values], [for weights], [scratch] ----

struct GradientCall {
  IsotonicProblem problem;
  const std::uint8_t* starts = nullptr;
  ConstArray incoming;
  IsotonicGradient out;
};

ffi::Error make_gradient_call(const Array& incoming, const Array& values, const Array& starts,
                              ffi::RemainingArgs rest, ffi::RemainingRets rets, bool weighted,
                              bool for_values, bool for_weights, std::size_t scratch_rets,
                              GradientCall* call) {
  Optional optional(rest);
  const std::optional<Array> weights = optional.next(weighted);
  const std::int64_t total = size(values);
  if (!optional.complete() || size(incoming) != total || size(starts) != total ||
      starts.element_type() != ffi::U8 || (weights && size(*weights) != total)) {
    return fault("the call's arguments are not those of a gradient");
  }
  call->problem.values = view(values);
  if (weights) call->problem.weights = view(*weights);
  // Blocks are runs between flags, whatever the rows.
  call->problem.rows = Rows::single(total);
  call->starts = static_cast<const std::uint8_t*>(starts.untyped_data());
  call->incoming = view(incoming);
  std::size_t at = 0;
  for (const bool of_values : {true, false}) {
    if (!(of_values ? for_values : for_weights)) continue;
    auto found = rets.get<Array>(at++);
    if (!found.has_value() || size(**found) != total) {
      return fault("the call's results are not those of a gradient");
    }
    (of_values ? call->out.values : call->out.weights) = view(*found);
  }
  if (rets.size() != at + scratch_rets) return fault("the call's results are not those of a gradient");
  return ffi::Error::Success();
}

ffi::Error gradient_on_host(Array incoming, Array values, Array starts, ffi::RemainingArgs rest,
                            ffi::RemainingRets rets, bool weighted, bool for_values, bool for_weights) {
  GradientCall call;
  if (ffi::Error error = make_gradient_call(incoming, values, starts, rest, rets, weighted, for_values,
                                            for_weights, 0, &call);
      error.failure()) {
    return error;
  }
  const Status status = isotonic_gradient(call.problem, call.starts, call.incoming, call.out);
  if (!refused(status)) return report(status);
  Refusals refusals = Refusals::of_blocks(call.problem, call.starts);
  const Status mended =
      isotonic_gradient(refusals.harmless(call.problem), call.starts, call.incoming, call.out);
  refusals.refuse(call.out.values);
  refusals.refuse(call.out.weights);
  return report(mended);
}

ffi::Error gradient_on_device(void* stream, Array incoming, Array values, Array starts,
                              ffi::RemainingArgs rest, ffi::RemainingRets rets, bool weighted,
                              bool for_values, bool for_weights) {
  GradientCall call;
  if (ffi::Error error = make_gradient_call(incoming, values, starts, rest, rets, weighted, for_values,
                                            for_weights, 1, &call);
      error.failure()) {
    return error;
  }
  auto scratch = rets.get<Array>(rets.size() - 1);
  if (!scratch.has_value()) return fault("the call's results are not those of a gradient");
  return report(
      isotonic_gradient(call.problem, call.starts, call.incoming, call.out, on_stream(stream, *scratch)));
}

// ---- What XLA calls ----

XLA_FFI_DEFINE_HANDLER(kFitOnHost, fit_on_host,
                       ffi::Ffi::Bind()
                           .Arg<Array>()
                           .RemainingArgs()
                           .Ret<Array>()
                           .Ret<Array>()
                           .Attr<std::int64_t>("row_length")
                           .Attr<bool>("weighted")
                           .Attr<bool>("ragged")
                           .Attr<bool>("increasing"));

XLA_FFI_DEFINE_HANDLER(kFitOnDevice, fit_on_device,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::PlatformStream<void*>>()
                           .Arg<Array>()
                           .RemainingArgs()
                           .Ret<Array>()
                           .Ret<Array>()
                           .Ret<Array>()
                           .Attr<std::int64_t>("row_length")
                           .Attr<bool>("weighted")
                           .Attr<bool>("ragged")
                           .Attr<bool>("increasing"),
                       {ffi::Traits::kCmdBufferCompatible});

XLA_FFI_DEFINE_HANDLER(kGradientOnHost, gradient_on_host,
                       ffi::Ffi::Bind()
                           .Arg<Array>()
                           .Arg<Array>()
                           .Arg<Array>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<bool>("weighted")
                           .Attr<bool>("for_values")
                           .Attr<bool>("for_weights"));

XLA_FFI_DEFINE_HANDLER(kGradientOnDevice, gradient_on_device,
                       ffi::Ffi::Bind()
                           .Ctx<ffi::PlatformStream<void*>>()
                           .Arg<Array>()
                           .Arg<Array>()
                           .Arg<Array>()
                           .RemainingArgs()
                           .RemainingRets()
                           .Attr<bool>("weighted")
                           .Attr<bool>("for_values")
                           .Attr<bool>("for_weights"),
                       {ffi::Traits::kCmdBufferCompatible});

void* address(XLA_FFI_Handler* handler) {
  return reinterpret_cast<void*>(handler);  // NOLINT(*-reinterpret-cast): how XLA takes them
}

}  // namespace

std::string xla_ffi_version() {
  return std::to_string(XLA_FFI_API_MAJOR) + "." + std::to_string(XLA_FFI_API_MINOR);
}

XlaHandlers xla_handlers_on_host() { return {address(kFitOnHost), address(kGradientOnHost)}; }
XlaHandlers xla_handlers_on_device() { return {address(kFitOnDevice), address(kGradientOnDevice)}; }

}  // namespace isofold::python
