// A build without XLA's headers.
#include <stdexcept>

#include "../xla.hpp"

namespace isofold::python {
namespace {

[[noreturn]] void refuse() {
  throw std::runtime_error(
      "this build of isofold has no custom calls for JAX: install its source with "
      "pip install . -C cmake.define.ISOFOLD_XLA_FFI=AUTO");
}

}  // namespace

std::string xla_ffi_version() { return {}; }
XlaHandlers xla_handlers_on_host() { refuse(); }
XlaHandlers xla_handlers_on_device() { refuse(); }

}  // namespace isofold::python
