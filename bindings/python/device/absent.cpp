// A build without CUDA.
#include "../device.hpp"

#include <stdexcept>

namespace isofold::python {
namespace {

[[noreturn]] void refuse() { throw std::runtime_error(cuda_fault()); }

}  // namespace

std::string cuda_fault() {
  return "this build of isofold has no CUDA: with a CUDA toolkit and a C++ compiler, install its source with "
         "pip install . -C cmake.define.ISOFOLD_CUDA=ON";
}

CurrentDevice::CurrentDevice(int) { refuse(); }
CurrentDevice::~CurrentDevice() = default;

void* allocate_on_device(std::int64_t, std::intptr_t) { refuse(); }
void free_on_device(void*, std::intptr_t) noexcept {}
void zero_on_device(void*, std::int64_t, std::intptr_t) { refuse(); }
void set_bytes_on_device(void*, std::int64_t, std::int64_t, int, std::int64_t, std::intptr_t) { refuse(); }
void order_streams(std::intptr_t, std::intptr_t) { refuse(); }

}  // namespace isofold::python
