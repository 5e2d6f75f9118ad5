#include "arrays.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace isofold::python {
namespace {

nb::dlpack::dtype dlpack_type(DataType type) {
  const auto code = static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float);
  switch (type) {
    case DataType::float16:
      return {code, 16, 1};
    case DataType::float32:
      return {code, 32, 1};
    case DataType::float64:
      return {code, 64, 1};
    case DataType::bfloat16:  // NumPy has no such type: the bits
      return {static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt), 16, 1};
    case DataType::none:
      break;
  }
  throw nb::type_error("no element type");
}

// Large outputs ask for huge pages, as NumPy's own do: a page fault every 4 KiB would cost as much as the
// fit.
void* allocate(std::size_t bytes) {
  constexpr std::size_t kSmallAlignment = 64;  // a cache line, and enough for any vector width
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kSmallAlignment;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* data = std::aligned_alloc(alignment, rounded > 0 ? rounded : alignment);
  if (data == nullptr) throw std::bad_alloc();
#if defined(MADV_HUGEPAGE)
  // Advice that may go unheard.
  if (alignment == kHugePage) (void)::madvise(data, rounded, MADV_HUGEPAGE);
#endif
  return data;
}

Output make_output(nb::dlpack::dtype type, std::int64_t size) {
  const std::size_t count = size > 0 ? static_cast<std::size_t>(size) : 0;
  void* data = allocate(count * type.bits / 8);
  const nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
  nb::ndarray<nb::numpy> array(data, 1, &count, owner, nullptr, type, nb::device::cpu::value, 0);
  return {data, nb::cast(array)};
}

}  // namespace

DataType data_type(nb::dlpack::dtype type, const char* name) {
  if (type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Bfloat) && type.bits == 16 &&
      type.lanes == 1) {
    return DataType::bfloat16;
  }
  if (type.code == static_cast<std::uint8_t>(nb::dlpack::dtype_code::Float) && type.lanes == 1) {
    switch (type.bits) {
      case 16:
        return DataType::float16;
      case 32:
        return DataType::float32;
      case 64:
        return DataType::float64;
      default:
        break;
    }
  }
  throw nb::type_error((std::string(name) + " must be float16, float32 or float64").c_str());
}

ConstArray view(const Input& array, const char* name) {
  return {array.data(), data_type(array.dtype(), name)};
}

ConstArray view(const std::optional<Input>& array, const char* name) {
  return array ? view(*array, name) : ConstArray{};
}

DataType parse_data_type(const std::string& name) {
  if (name == "float16") return DataType::float16;
  if (name == "float32") return DataType::float32;
  if (name == "float64") return DataType::float64;
  throw nb::value_error(("out_dtype must be float16, float32 or float64, not " + name).c_str());
}

Output make_output(DataType type, std::int64_t size) { return make_output(dlpack_type(type), size); }

Output make_integers(std::int64_t size) {
  return make_output({static_cast<std::uint8_t>(nb::dlpack::dtype_code::Int), 64, 1}, size);
}

Output make_flags(std::int64_t size) {
  return make_output({static_cast<std::uint8_t>(nb::dlpack::dtype_code::UInt), 8, 1}, size);
}

void check_size(std::size_t size, std::int64_t expected, const char* name) {
  if (static_cast<std::int64_t>(size) != expected) {
    throw nb::value_error((std::string(name) + " has " + std::to_string(size) + " entries, expected " +
                           std::to_string(expected))
                              .c_str());
  }
}

}  // namespace isofold::python
