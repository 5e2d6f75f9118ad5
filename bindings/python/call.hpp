// One call into the library: the GIL is released, signals are polled, and the status becomes a Python
// exception.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "isofold/executor.hpp"
#include "isofold/status.hpp"

namespace isofold::python {

namespace nb = nanobind;

// Lets Python's signal handlers run during a long call. Only the main thread runs them, so other threads ask
// once and then leave the GIL alone.
class SignalPoll {
 public:
  // Executor::should_stop; `context` is a SignalPoll.
  static bool should_stop(void* context);

 private:
  bool due();

  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool first_ = true;
  bool active_ = true;
};

Executor make_executor(int threads, std::int64_t chunk_size, const std::string& backend, SignalPoll& poll);

// Throws what the status says: ValueError, MemoryError, RuntimeError, or what a signal handler raised.
void check(const Status& status);

// The same, but false where it is the data that cannot be fitted.
[[nodiscard]] bool check_data(const Status& status);

template <class Function>
void call_without_gil(Function&& function) {
  Status status;
  {
    const nb::gil_scoped_release release;
    status = function();
  }
  check(status);
}

}  // namespace isofold::python
