// Tensors as they are, of a library with DLPack's exchange table: no capsule, no flattening, no stream looked
// up in Python. What is not served here in one glance (another layout, dtype or device, a row that cannot be
// fitted, no memory) is answered with False, and the Python side goes a longer way, with errors in its words.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "bindings.hpp"
#include "call.hpp"
#include "device.hpp"
#include "exchange_table.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/projection.hpp"

namespace isofold::python {
namespace {

DataType data_type(dlpack::ElementType type) {
  constexpr std::uint8_t kFloat = 2;
  constexpr std::uint8_t kBfloat = 4;
  if (type.lanes != 1) return DataType::none;
  if (type.code == kBfloat) return type.bits == 16 ? DataType::bfloat16 : DataType::none;
  if (type.code != kFloat) return DataType::none;
  switch (type.bits) {
    case 16:
      return DataType::float16;
    case 32:
      return DataType::float32;
    case 64:
      return DataType::float64;
    default:
      return DataType::none;
  }
}

constexpr std::uint8_t kSigned = 0;
constexpr std::uint8_t kUnsigned = 1;

bool is_integer(dlpack::ElementType type, std::uint8_t code, int bits) {
  return type.code == code && type.bits == bits && type.lanes == 1;
}

bool in_c_order(const dlpack::Tensor& tensor) {
  if (tensor.strides == nullptr) return true;
  std::int64_t stride = 1;
  for (std::int32_t d = tensor.dimensions - 1; d >= 0; --d) {
    if (tensor.shape[d] != 1 && tensor.strides[d] != stride) return false;
    stride *= tensor.shape[d];
  }
  return true;
}

// A tensor in C order, with elements.
struct View {
  dlpack::Tensor tensor{};
  std::int64_t size = 0;

  [[nodiscard]] void* data() const { return static_cast<unsigned char*>(tensor.data) + tensor.byte_offset; }
  [[nodiscard]] ConstArray array() const { return {data(), data_type(tensor.type)}; }
  [[nodiscard]] MutableArray output() const { return {data(), data_type(tensor.type)}; }
};

class TensorLibrary {
 public:
  explicit TensorLibrary(const nb::object& table)
      : table_(static_cast<const dlpack::ExchangeTable*>(
            PyCapsule_GetPointer(table.ptr(), "dlpack_exchange_api"))) {
    if (table_ == nullptr) throw nb::python_error();
    while (table_->major_version > dlpack::kMajorVersion && table_->older != nullptr) table_ = table_->older;
    if (table_->major_version != dlpack::kMajorVersion || table_->tensor_from_object == nullptr) {
      throw nb::value_error("DLPack's exchange table is of a version that is not known here");
    }
  }

  // Rows of the last dimension, or by offsets.
  [[nodiscard]] bool fit(nb::handle values, nb::handle weights, nb::handle offsets,
                         std::optional<std::int64_t> row_length, bool increasing, double lower, double upper,
                         nb::handle fit, nb::handle block_starts) const {
    Call call(*this);
    if (!call.pose(values, weights, offsets, row_length, increasing, lower, upper)) return false;
    IsotonicFit out;
    View fitted;
    if (!call.like_values(fit, fitted)) return false;
    out.fit = fitted.output();
    if (!block_starts.is_none() && !call.flags(block_starts, out.block_starts)) return false;
    if (!call.ready(data_type(fitted.tensor.type))) return false;
    return run(
        call, [&](std::int64_t* bytes) { return isotonic_regression_scratch(call.problem, bytes); },
        [&] { return isotonic_regression(call.problem, out, call.executor); });
  }

  [[nodiscard]] bool gradient(nb::handle values, nb::handle weights, nb::handle offsets,
                              std::optional<std::int64_t> row_length, bool increasing, double lower,
                              double upper, nb::handle block_starts, nb::handle fit_gradient,
                              nb::handle for_values, nb::handle for_weights) const {
    Call call(*this);
    if (!call.pose(values, weights, offsets, row_length, increasing, lower, upper)) return false;
    std::uint8_t* starts = nullptr;
    View given;
    View found;
    View of_weights;
    IsotonicGradient out;
    if (!call.flags(block_starts, starts) || !call.like_values(fit_gradient, given) ||
        !call.like_values(for_values, found) || !call.ready(given.array().type)) {
      return false;
    }
    out.values = found.output();
    if (!for_weights.is_none()) {
      if (!call.like_values(for_weights, of_weights)) return false;
      out.weights = of_weights.output();
      if (!call.ready(out.weights.type)) return false;
    }
    return run(
        call, [&](std::int64_t* bytes) { return isotonic_gradient_scratch(call.problem, bytes); },
        [&] { return isotonic_gradient(call.problem, starts, given.array(), out, call.executor); });
  }

  // Soft operators of sorted rows of the last dimension; kind: rank, sort or topk.
  [[nodiscard]] bool project(nb::handle sorted, nb::handle order, const std::string& kind, double sign,
                             double strength, std::int64_t k, nb::handle out, nb::handle block_starts) const {
    Call call(*this);
    ProjectionProblem problem;
    View found;
    std::uint8_t* starts = nullptr;
    if (!call.pose(sorted, order, {kind, sign, strength, k}, problem) || !call.of_type(out, found) ||
        !call.flags(block_starts, starts) || !call.ready(found.array().type)) {
      return false;
    }
    return run(
        call, [&](std::int64_t* bytes) { return projection_scratch(problem, bytes); },
        [&] { return projection(problem, call.problem.values, found.output(), starts, call.executor); });
  }

  [[nodiscard]] bool project_gradient(nb::handle result, nb::handle order, const std::string& kind,
                                      double sign, double strength, nb::handle block_starts,
                                      nb::handle gradient, nb::handle out) const {
    Call call(*this);
    ProjectionProblem problem;
    View given;
    View found;
    std::uint8_t* starts = nullptr;
    if (!call.pose(result, order, {kind, sign, strength, 0}, problem) || !call.of_type(gradient, given) ||
        !call.of_type(out, found) || !call.flags(block_starts, starts) || !call.ready(given.array().type)) {
      return false;
    }
    return run(
        call, [&](std::int64_t* bytes) { return projection_gradient_scratch(problem, bytes); },
        [&] {
          return projection_gradient(problem, starts, call.problem.values, given.array(), found.output(),
                                     call.executor);
        });
  }

 private:
  // What a projection is told beside its tensors.
  struct Asked {
    const std::string& kind;
    double sign;
    double strength;
    std::int64_t k;
  };

  // False where it cannot be read, or has no elements in its memory.
  [[nodiscard]] bool read(nb::handle object, View& view) const {
    if (table_->tensor_from_object(object.ptr(), &view.tensor) != 0) {
      PyErr_Clear();
      return false;
    }
    view.size = 1;
    for (std::int32_t d = 0; d < view.tensor.dimensions; ++d) view.size *= view.tensor.shape[d];
    return view.size > 0 && view.tensor.data != nullptr && in_c_order(view.tensor);
  }

  struct Call {
    explicit Call(const TensorLibrary& of) : library(of) {
      executor.should_stop = &SignalPoll::should_stop;
      executor.should_stop_context = &poll;
    }
    Call(const Call&) = delete;  // the executor points into it
    Call& operator=(const Call&) = delete;
    ~Call() = default;

    [[nodiscard]] bool on_device() const { return device.type == dlpack::kCuda; }

    [[nodiscard]] bool beside(nb::handle object, View& view) const {
      return library.read(object, view) && view.tensor.device.type == device.type &&
             view.tensor.device.id == device.id;
    }

    [[nodiscard]] bool like_values(nb::handle object, View& view) const {
      return beside(object, view) && view.size == total && view.array().present();
    }

    [[nodiscard]] bool flags(nb::handle object, std::uint8_t*& found) const {
      View view;
      if (!beside(object, view) || view.size != total || !is_integer(view.tensor.type, kUnsigned, 8)) {
        return false;
      }
      found = static_cast<std::uint8_t*>(view.data());
      return true;
    }

    [[nodiscard]] bool pose(nb::handle values, nb::handle weights, nb::handle offsets,
                            std::optional<std::int64_t> row_length, bool increasing, double lower,
                            double upper) {
      View view;
      if (!library.read(values, view) || view.tensor.dimensions == 0) return false;
      device = view.tensor.device;
      total = view.size;
      problem.values = view.array();
      problem.increasing = increasing;
      problem.lower_bound = lower;
      problem.upper_bound = upper;
      if (!problem.values.present()) return false;
      if (!weights.is_none()) {
        View given;
        if (!like_values(weights, given)) return false;
        problem.weights = given.array();
      }
      return offsets.is_none() ? cut(row_length.value_or(total)) : cut(offsets);
    }

    // Of float32 or float64, in host or device memory.
    [[nodiscard]] bool pose(nb::handle values, nb::handle order, const Asked& asked,
                            ProjectionProblem& projection) {
      View view;
      View positions;
      if (!library.read(values, view) || view.tensor.dimensions == 0) return false;
      device = view.tensor.device;
      total = view.size;
      problem.values = view.array();
      if (problem.values.type != DataType::float32 && problem.values.type != DataType::float64) return false;
      if (!beside(order, positions) || positions.size != total ||
          !is_integer(positions.tensor.type, kSigned, 64)) {
        return false;
      }
      projection.length = view.tensor.shape[view.tensor.dimensions - 1];
      projection.rows = total / projection.length;
      projection.order = static_cast<const std::int64_t*>(positions.data());
      projection.kind = asked.kind == "rank"   ? Projection::ranks
                        : asked.kind == "sort" ? Projection::sorted
                                               : Projection::top;
      projection.sign = asked.sign;
      projection.strength = asked.strength;
      projection.k = asked.k;
      return true;
    }

    [[nodiscard]] bool of_type(nb::handle object, View& view) const {
      return like_values(object, view) && view.array().type == problem.values.type;
    }

    [[nodiscard]] bool cut(std::int64_t length) {
      if (length <= 0 || total % length != 0) return false;
      problem.rows = Rows::rectangle(total / length, length);
      return true;
    }

    [[nodiscard]] bool cut(nb::handle offsets) {
      View view;
      if (!beside(offsets, view) || !is_integer(view.tensor.type, kSigned, 64)) return false;
      const auto* ends = static_cast<const std::int64_t*>(view.data());
      const std::int64_t rows = view.size - 1;
      if (on_device()) {
        problem.rows = Rows::ragged_on_device(ends, rows, total);
        return true;
      }
      // Faults are worded in Python.
      if (ends[0] != 0 || ends[rows] != total) return false;
      for (std::int64_t r = 0; r < rows; ++r) {
        if (ends[r] > ends[r + 1]) return false;
      }
      problem.rows = Rows::ragged(ends, rows);
      return true;
    }

    // Whether the executor of this place takes what it was given; `other` is a type beside the problem's.
    [[nodiscard]] bool ready(DataType other) {
      if (device.type == dlpack::kHost) return true;
      const auto taken = [](DataType type) { return type == DataType::float32 || type == DataType::float64; };
      if (!on_device() || !taken(other) || !taken(problem.values.type)) return false;
      if (problem.weights.present() && !taken(problem.weights.type)) return false;
      static const std::string fault = cuda_fault();
      if (!fault.empty()) throw std::runtime_error(fault);
      executor.backend = Backend::cuda;
      if (library.table_->current_stream(device.type, device.id, &executor.stream) != 0) {
        throw nb::python_error();
      }
      return true;
    }

    const TensorLibrary& library;
    IsotonicProblem problem;
    Executor executor;
    SignalPoll poll;
    dlpack::Device device{};
    std::int64_t total = 0;
  };

  // Of the library's own allocator, so in the order of its current stream, and a CUDA graph's while it is
  // captured.
  class Scratch {
   public:
    explicit Scratch(const TensorLibrary& of) : library_(of) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() {
      if (memory_ != nullptr && memory_->deleter != nullptr) memory_->deleter(memory_);
    }

    // False where the library has none.
    [[nodiscard]] bool allocate(Call& call, std::int64_t bytes) {
      if (bytes == 0) return true;
      std::int64_t stride = 1;
      dlpack::Tensor prototype{nullptr, call.device, 1, {1, 8, 1}, &bytes, &stride, 0};
      // The longer way asks the library in Python, which raises an error of its own.
      const auto ignore = [](void*, const char*, const char*) {};
      if (library_.table_->allocate(&prototype, &memory_, nullptr, ignore) != 0) {
        memory_ = nullptr;
        PyErr_Clear();
        return false;
      }
      call.executor.scratch = static_cast<unsigned char*>(memory_->tensor.data) + memory_->tensor.byte_offset;
      call.executor.scratch_bytes = bytes;
      return true;
    }

   private:
    const TensorLibrary& library_;
    dlpack::ManagedTensor* memory_ = nullptr;
  };

  // `work`, which takes as much scratch memory of a device as `ask` says.
  template <class Ask, class Work>
  [[nodiscard]] bool run(Call& call, Ask ask, Work work) const {
    std::optional<CurrentDevice> current;
    Scratch scratch(*this);
    if (call.on_device()) {
      current.emplace(call.device.id);
      std::int64_t bytes = 0;
      check(ask(&bytes));
      if (!scratch.allocate(call, bytes)) return false;
    }
    Status status;
    {
      const nb::gil_scoped_release release;
      status = work();
    }
    return check_data(status);
  }

  const dlpack::ExchangeTable* table_;
};

}  // namespace

void bind_tensors(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<TensorLibrary>(module, "TensorLibrary",
                            "A library's tensors, by its type's __dlpack_c_exchange_api__. Methods write to "
                            "tensors given for it; where they answer False, what those hold is void.")
      .def(nb::init<const nb::object&>(), "table"_a)
      .def("fit", &TensorLibrary::fit, "values"_a, "weights"_a.none(), "offsets"_a.none(),
           "row_length"_a.none(), "increasing"_a, "lower"_a, "upper"_a, "fit"_a, "block_starts"_a.none())
      .def("gradient", &TensorLibrary::gradient, "values"_a, "weights"_a.none(), "offsets"_a.none(),
           "row_length"_a.none(), "increasing"_a, "lower"_a, "upper"_a, "block_starts"_a, "gradient"_a,
           "for_values"_a, "for_weights"_a.none())
      .def("project", &TensorLibrary::project, "sorted"_a, "order"_a, "kind"_a, "sign"_a, "strength"_a, "k"_a,
           "out"_a, "block_starts"_a)
      .def("project_gradient", &TensorLibrary::project_gradient, "result"_a, "order"_a, "kind"_a, "sign"_a,
           "strength"_a, "block_starts"_a, "gradient"_a, "out"_a);
}

}  // namespace isofold::python
