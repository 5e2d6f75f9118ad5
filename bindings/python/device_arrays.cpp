// Arrays in device memory, through DLPack. The Python side (isofold._device) brings every array to one flat
// contiguous dimension with the means of the library it comes from, and asks that library for a capsule that
// is ordered on the stream of the call.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"
#include "device.hpp"
#include "device_views.hpp"
#include "isofold/isotonic.hpp"

namespace isofold::python {
namespace {

template <class Array>
auto* device_flags(const Array& array, std::int64_t size, int device) {
  check_place(array, device, "block_starts");
  check_size(array.size(), size, "block_starts");
  if (array.dtype() != nb::dtype<std::uint8_t>()) throw nb::type_error("block_starts must be uint8");
  if constexpr (Array::ReadOnly) {
    return static_cast<const std::uint8_t*>(array.data());
  } else {
    return static_cast<std::uint8_t*>(array.data());
  }
}

// A problem whose arrays it keeps alive.
class DeviceProblem {
 public:
  DeviceProblem(int device, DeviceInput values, std::optional<DeviceInput> weights,
                std::optional<DeviceInput> offsets, std::optional<std::int64_t> row_length, bool increasing,
                double lower, double upper)
      : device_(device),
        total_(static_cast<std::int64_t>(values.size())),
        values_(std::move(values)),
        weights_(std::move(weights)),
        offsets_(std::move(offsets)) {
    problem_.values = device_view(values_, total_, device_, "values");
    if (weights_) problem_.weights = device_view(*weights_, total_, device_, "weights");
    problem_.rows = device_rows(device_, total_, offsets_, row_length);
    problem_.increasing = increasing;
    problem_.lower_bound = lower;
    problem_.upper_bound = upper;
  }

  [[nodiscard]] std::int64_t scratch_bytes() const {
    std::int64_t bytes = 0;
    call_without_gil([&] {
      const CurrentDevice current(device_);
      return isotonic_regression_scratch(problem_, &bytes);
    });
    return bytes;
  }

  void fit(const DeviceOutput& fitted, const DeviceOutput& block_starts,
           const std::optional<DeviceOutput>& scratch, std::intptr_t stream) const {
    const IsotonicFit out{device_view(fitted, total_, device_, "fit"),
                          device_flags(block_starts, total_, device_)};
    Executor executor = on(stream);
    if (scratch) {
      check_place(*scratch, device_, "scratch");
      executor.scratch = scratch->data();
      executor.scratch_bytes = static_cast<std::int64_t>(scratch->nbytes());
    }
    call_without_gil([&] {
      const CurrentDevice current(device_);
      return isotonic_regression(problem_, out, executor);
    });
  }

  void gradient(const DeviceInput& block_starts, const DeviceInput& fit_gradient,
                const DeviceOutput& for_values, const std::optional<DeviceOutput>& for_weights,
                std::intptr_t stream) const {
    const std::uint8_t* flags = device_flags(block_starts, total_, device_);
    const ConstArray given = device_view(fit_gradient, total_, device_, "gradient");
    IsotonicGradient out{device_view(for_values, total_, device_, "for_values"), MutableArray{}};
    if (for_weights) out.weights = device_view(*for_weights, total_, device_, "for_weights");
    const Executor executor = on(stream);
    call_without_gil([&] {
      const CurrentDevice current(device_);
      return isotonic_gradient(problem_, flags, given, out, executor);
    });
  }

 private:
  [[nodiscard]] static Executor on(std::intptr_t stream) {
    Executor executor;
    executor.backend = Backend::cuda;
    executor.stream = stream_handle(stream);
    return executor;
  }

  int device_;
  std::int64_t total_;
  DeviceInput values_;
  std::optional<DeviceInput> weights_;
  std::optional<DeviceInput> offsets_;
  IsotonicProblem problem_;
};

// Device memory of our own, for libraries whose arrays cannot be written to. Freed in the order of its
// stream.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::int64_t size, const std::string& type, bool blank, std::intptr_t stream)
      : device_(device), size_(size), stream_(stream) {
    dtype_ = type == "uint8" ? nb::dtype<std::uint8_t>()
                             : (type == "float32" ? nb::dtype<float>() : nb::dtype<double>());
    const CurrentDevice current(device_);
    const std::int64_t width = dtype_.bits / 8;
    data_ = allocate_on_device(size * width, stream_);
    if (!blank) return;
    zero_on_device(data_, size * width, stream_);
    if (dtype_.bits == 8) return;
    // The canonical NaN's highest two bytes.
    set_bytes_on_device(data_, width, width - 1, 0x7f, size, stream_);
    set_bytes_on_device(data_, width, width - 2, width == 4 ? 0xc0 : 0xf8, size, stream_);
  }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() {
    try {
      const CurrentDevice current(device_);
      free_on_device(data_, stream_);
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the device is gone, and this with it
    }
  }

  // DLPack's protocol: what the consumer enqueues on its stream waits for what is on ours.
  static nb::object dlpack(nb::handle_t<DeviceMemory> self, std::optional<std::intptr_t> consumer,
                           const nb::kwargs&) {
    const auto& memory = nb::cast<const DeviceMemory&>(self);
    if (consumer != -1) {
      const CurrentDevice current(memory.device_);
      order_streams(memory.stream_, consumer.value_or(1));
    }
    const auto size = static_cast<std::size_t>(memory.size_);
    const nb::ndarray<> array(memory.data_, 1, &size, self, nullptr, memory.dtype_, kCuda, memory.device_);
    return nb::cast(array);
  }
  [[nodiscard]] std::tuple<int, int> dlpack_device() const { return {kCuda, device_}; }

 private:
  int device_;
  std::int64_t size_;
  std::intptr_t stream_;
  nb::dlpack::dtype dtype_{};
  void* data_ = nullptr;
};

}  // namespace

void bind_device_arrays(nb::module_& module) {
  using namespace nb::literals;
  module.def("cuda_fault", &cuda_fault,
             "Why no device array can be served, in words that say how to mend it; empty where it can.");
  nb::class_<DeviceProblem>(module, "DeviceProblem",
                            "A batch of rows in device memory, as capsules; it keeps them.")
      .def(nb::init<int, DeviceInput, std::optional<DeviceInput>, std::optional<DeviceInput>,
                    std::optional<std::int64_t>, bool, double, double>(),
           "device"_a, "values"_a, "weights"_a.none(), "offsets"_a.none(), "row_length"_a.none(),
           "increasing"_a, "lower"_a, "upper"_a)
      .def("scratch_bytes", &DeviceProblem::scratch_bytes, "What fit takes as scratch.")
      .def("fit", &DeviceProblem::fit, "fit"_a, "block_starts"_a, "scratch"_a.none(), "stream"_a,
           "Enqueues the fit on the stream.")
      .def("gradient", &DeviceProblem::gradient, "block_starts"_a, "gradient"_a, "for_values"_a,
           "for_weights"_a.none(), "stream"_a, "Enqueues the gradient on the stream.");
  nb::class_<DeviceMemory>(module, "DeviceMemory",
                           "A flat array in device memory; blank: of NaN, or of zeros where it holds uint8.")
      .def(nb::init<int, std::int64_t, const std::string&, bool, std::intptr_t>(), "device"_a, "size"_a,
           "dtype"_a, "blank"_a, "stream"_a)
      .def("__dlpack__", &DeviceMemory::dlpack, nb::kw_only(), "stream"_a = nb::none(), "options"_a,
           nb::sig("def __dlpack__(self, *, stream: int | None = None, **options: object) -> object"))
      .def("__dlpack_device__", &DeviceMemory::dlpack_device);
}

}  // namespace isofold::python
