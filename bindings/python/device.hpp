// The little of CUDA's run time that the bindings themselves need: device/present.cpp, or device/absent.cpp
// in a build without CUDA, where everything but cuda_fault throws. Streams are numbers, as in DLPack: 1 is
// the legacy default stream, 2 the thread's.
#pragma once

#include <cstdint>
#include <string>

namespace isofold::python {

// Why no device array can be served, in words that say how to mend it; empty where it can.
std::string cuda_fault();

// Makes a device the current one of this thread, until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device);
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();  // NOLINT(performance-trivially-destructible): not where there is CUDA

 private:
  int previous_ = -1;  // to go back to; none: it was that device
};

// Memory of the current device, in the order of a stream.
void* allocate_on_device(std::int64_t bytes, std::intptr_t stream);
void free_on_device(void* memory, std::intptr_t stream) noexcept;
void zero_on_device(void* memory, std::int64_t bytes, std::intptr_t stream);
// Sets byte `which` of each of `count` elements of `size` bytes.
void set_bytes_on_device(void* memory, std::int64_t size, std::int64_t which, int value, std::int64_t count,
                         std::intptr_t stream);

// What is enqueued on `later` from now on runs after what is on `earlier` now.
void order_streams(std::intptr_t earlier, std::intptr_t later);

}  // namespace isofold::python
