// XLA's custom calls, for isofold.jax: xla/handlers.cpp, or xla/absent.cpp in a build without XLA's headers.
#pragma once

#include <cstddef>
#include <string>

namespace isofold::python {

// The version of XLA's interface that the handlers speak; empty in a build without.
std::string xla_ffi_version();

// XLA_FFI_Handlers.
struct XlaHandlers {
  void* fit;
  void* gradient;
};
XlaHandlers xla_handlers_on_host();
XlaHandlers xla_handlers_on_device();

// XLA aligns device memory to less than the executor asks for, so scratch has as much to spare.
inline constexpr std::size_t kXlaScratchAlignment = 256;

}  // namespace isofold::python
