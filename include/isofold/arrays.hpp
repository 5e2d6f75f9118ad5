// Typed views of caller-owned memory. Contiguous; any alignment the element type allows.
#pragma once

#include <cstdint>

namespace isofold {

enum class DataType : std::uint8_t { none, float16, bfloat16, float32, float64 };

// Storage for the half types: the bits, no arithmetic.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <class T>
inline constexpr DataType data_type_of = DataType::none;
template <>
inline constexpr DataType data_type_of<Float16> = DataType::float16;
template <>
inline constexpr DataType data_type_of<BFloat16> = DataType::bfloat16;
template <>
inline constexpr DataType data_type_of<float> = DataType::float32;
template <>
inline constexpr DataType data_type_of<double> = DataType::float64;

// An input. Default-constructed: absent (weights of one).
struct ConstArray {
  const void* data = nullptr;
  DataType type = DataType::none;

  ConstArray() = default;
  ConstArray(const void* pointer, DataType data_type) : data(pointer), type(data_type) {}
  template <class T>
    requires(data_type_of<T> != DataType::none)
  // NOLINTNEXTLINE(google-explicit-constructor): arrays are passed as they are
  ConstArray(const T* pointer) : data(pointer), type(data_type_of<T>) {}

  [[nodiscard]] bool present() const noexcept { return type != DataType::none; }
};

// An output. Default-constructed: not wanted.
struct MutableArray {
  void* data = nullptr;
  DataType type = DataType::none;

  MutableArray() = default;
  MutableArray(void* pointer, DataType data_type) : data(pointer), type(data_type) {}
  template <class T>
    requires(data_type_of<T> != DataType::none)
  // NOLINTNEXTLINE(google-explicit-constructor): arrays are passed as they are
  MutableArray(T* pointer) : data(pointer), type(data_type_of<T>) {}

  [[nodiscard]] bool present() const noexcept { return type != DataType::none; }
};

}  // namespace isofold
