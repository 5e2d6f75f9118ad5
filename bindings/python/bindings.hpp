// What each file adds to the module.
#pragma once

#include <nanobind/nanobind.h>

namespace isofold::python {

void bind_isotonic(nanobind::module_& module);
void bind_numpy_row(nanobind::module_& module);
void bind_device_arrays(nanobind::module_& module);
void bind_tensors(nanobind::module_& module);
void bind_interpolation(nanobind::module_& module);
void bind_conjugate_gradient(nanobind::module_& module);
void bind_segmented(nanobind::module_& module);
void bind_float_environment(nanobind::module_& module);
void bind_device_trees(nanobind::module_& module);
void bind_trees(nanobind::module_& module);
void bind_xla(nanobind::module_& module);

}  // namespace isofold::python
