// Python code that compares or converts floats is at the mercy of the caller's floating-point mode: with
// denormals read as zero, 1e-320 == 0.0. The library's own entry points set and restore the mode; this does
// it for Python.
#include <cfenv>

#include "bindings.hpp"

namespace isofold::python {
namespace {

namespace nb = nanobind;

class DefaultFloatEnvironment {
 public:
  void enter() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  void exit() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_{};
};

}  // namespace

void bind_float_environment(nb::module_& module) {
  nb::class_<DefaultFloatEnvironment>(module, "DefaultFloatEnvironment",
                                      "Within it this thread rounds to nearest and keeps subnormals.")
      .def(nb::init<>())
      .def("__enter__", &DefaultFloatEnvironment::enter)
      .def(
          "__exit__", [](DefaultFloatEnvironment& self, const nb::args&) { self.exit(); },
          nb::sig("def __exit__(self, *exception: object) -> None"));
}

}  // namespace isofold::python
