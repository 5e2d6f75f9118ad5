// DLPack's C exchange table, as version 1.3 lays it out: how a library's tensors are read, its memory is
// allocated and its current stream is asked for without a Python call.
#pragma once

#include <cstdint>

namespace isofold::python::dlpack {

inline constexpr std::uint32_t kMajorVersion = 1;
inline constexpr std::int32_t kHost = 1;
inline constexpr std::int32_t kCuda = 2;

struct Device {
  std::int32_t type;
  std::int32_t id;
};

struct ElementType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  Device device;
  std::int32_t dimensions;
  ElementType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; nullptr: C order
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  std::uint32_t major_version;
  std::uint32_t minor_version;
  void* context;
  void (*deleter)(ManagedTensor*);
  std::uint64_t flags;
  Tensor tensor;
};

using SetError = void (*)(void* context, const char* kind, const char* message);

// Functions return 0, or another number with a Python exception set, or told to SetError.
struct ExchangeTable {
  std::uint32_t major_version;
  std::uint32_t minor_version;
  const ExchangeTable* older;
  int (*allocate)(Tensor* prototype, ManagedTensor** out, void* error_context, SetError set_error);
  int (*managed_from_object)(void* object, ManagedTensor** out);
  int (*object_from_managed)(ManagedTensor* tensor, void** out);
  int (*tensor_from_object)(void* object, Tensor* out);  // borrowed; may be nullptr
  int (*current_stream)(std::int32_t device_type, std::int32_t device_id, void** out);
};

}  // namespace isofold::python::dlpack
