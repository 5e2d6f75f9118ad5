#include "call.hpp"

namespace isofold::python {
namespace {

constexpr std::chrono::milliseconds poll_interval{50};

// The caller holds the GIL.
bool on_main_thread() {
  const nb::object main_thread = nb::module_::import_("threading").attr("main_thread")();
  const nb::object identifier = nb::module_::import_("threading").attr("get_ident")();
  return main_thread.attr("ident").equal(identifier);
}

}  // namespace

bool SignalPoll::due() {
  if (!active_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < poll_interval) return false;
  last_ = now;
  return true;
}

bool SignalPoll::should_stop(void* context) {
  auto& poll = *static_cast<SignalPoll*>(context);
  if (!poll.due()) return false;
  const nb::gil_scoped_acquire acquire;
  if (poll.first_) {
    poll.first_ = false;
    poll.active_ = on_main_thread();
  }
  return poll.active_ && PyErr_CheckSignals() != 0;
}

Executor make_executor(int threads, std::int64_t chunk_size, const std::string& backend, SignalPoll& poll) {
  Executor executor;
  if (backend == "reference") {
    executor.backend = Backend::reference;
  } else if (backend != "cpu") {
    throw nb::value_error(("backend must be cpu or reference, not " + backend).c_str());
  }
  executor.threads = threads;
  executor.chunk_size = chunk_size;
  executor.should_stop = &SignalPoll::should_stop;
  executor.should_stop_context = &poll;
  return executor;
}

bool check_data(const Status& status) {
  const bool refused = status.code == StatusCode::not_finite ||
                       status.code == StatusCode::weight_not_positive ||
                       status.code == StatusCode::bad_offsets;
  // A handler's exception comes first.
  if (refused && PyErr_Occurred() == nullptr) return false;
  check(status);
  return true;
}

void check(const Status& status) {
  // A handler's exception stands even if the work was done before it could be stopped.
  if (PyErr_Occurred() != nullptr) throw nb::python_error();
  switch (status.code) {
    case StatusCode::ok:
      return;
    case StatusCode::invalid_argument:
    case StatusCode::not_finite:
    case StatusCode::weight_not_positive:
    case StatusCode::bad_offsets:
      throw nb::value_error(status.message.c_str());
    case StatusCode::out_of_memory:
      throw std::bad_alloc();
    case StatusCode::unsupported:
    case StatusCode::interrupted:
    case StatusCode::device_error:
      break;
  }
  throw std::runtime_error(status.message.c_str());
}

}  // namespace isofold::python
