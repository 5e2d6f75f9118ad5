// isofold._native: flat, contiguous arrays in, fresh arrays out. The Python package checks and shapes its
// arguments before it comes here; what could touch memory out of bounds is checked here once more.
#include "bindings.hpp"

NB_MODULE(_native, module) {
  module.doc() = "The C++ library behind isofold. Private: call the functions of isofold instead.";
  isofold::python::bind_isotonic(module);
  isofold::python::bind_numpy_row(module);
  isofold::python::bind_device_arrays(module);
  isofold::python::bind_tensors(module);
  isofold::python::bind_interpolation(module);
  isofold::python::bind_segmented(module);
  isofold::python::bind_conjugate_gradient(module);
  isofold::python::bind_float_environment(module);
  isofold::python::bind_device_trees(module);
  isofold::python::bind_trees(module);
  isofold::python::bind_xla(module);
}
