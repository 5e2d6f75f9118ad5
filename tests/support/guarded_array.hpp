// An array of floats at a chosen distance from alignment, between guards that must survive the call.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "isofold/arrays.hpp"
#include "support/float_formats.hpp"

namespace isofold_test {

// How to lay an array out: `offset` elements past a multiple of 64 bytes, then `guard` poisoned elements on
// either side. Without guards the allocation ends with the array, so that an address sanitizer sees a read
// past it.
struct Layout {
  std::int64_t offset = 0;
  std::int64_t guard = 0;
  bool nan_poison = true;  // else the type's largest number, which a comparison does not shrug off
};

class GuardedArray {
 public:
  GuardedArray() = default;
  GuardedArray(DataType type, std::int64_t length, const Layout& layout)
      : type_(type), length_(length), guard_(layout.guard) {
    if (type == DataType::none) return;
    poison_ = layout.nan_poison ? canonical_nan(type) : spell(type, largest_finite(type));
    first_ = layout.offset + guard_;
    size_ = static_cast<std::size_t>(first_ + length + guard_) * size_of(type);
    bytes_.reset(static_cast<unsigned char*>(::operator new(size_, kAlignment)));
    std::memset(bytes_.get(), 0, size_);
    fill(poison_);
  }

  // Holding these numbers of the type.
  GuardedArray(DataType type, const std::vector<double>& numbers, const Layout& layout)
      : GuardedArray(type, static_cast<std::int64_t>(numbers.size()), layout) {
    if (type == DataType::none) return;
    for (std::int64_t i = 0; i < length_; ++i) set(i, numbers[static_cast<std::size_t>(i)]);
  }

  [[nodiscard]] DataType type() const { return type_; }
  [[nodiscard]] std::int64_t length() const { return length_; }
  [[nodiscard]] std::uint64_t poison() const { return poison_; }

  [[nodiscard]] std::uint64_t bits(std::int64_t i) const {
    return load_bits(bytes_.get(), type_, first_ + i);
  }
  [[nodiscard]] double value(std::int64_t i) const { return decode(type_, bits(i)); }
  void set_bits(std::int64_t i, std::uint64_t bits) { store_bits(bytes_.get(), type_, first_ + i, bits); }
  void set(std::int64_t i, double x) { set_bits(i, spell(type_, x)); }
  void clear() { fill(poison_); }

  // True while everything around the array is as it was made.
  [[nodiscard]] bool guards_intact() const {
    for (std::int64_t i = -guard_; i < length_ + guard_; ++i) {
      if ((i < 0 || i >= length_) && bits(i) != poison_) return false;
    }
    return true;
  }
  // Everything, guards included: equal before and after a call that must not write.
  [[nodiscard]] std::vector<unsigned char> snapshot() const { return {bytes_.get(), bytes_.get() + size_}; }

  [[nodiscard]] isofold::ConstArray input() const { return {pointer(), type_}; }
  [[nodiscard]] isofold::MutableArray output() { return {pointer(), type_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(unsigned char* bytes) const { ::operator delete(bytes, kAlignment); }
  };

  [[nodiscard]] unsigned char* pointer() const {
    return type_ == DataType::none ? nullptr
                                   : bytes_.get() + static_cast<std::size_t>(first_) * size_of(type_);
  }
  void fill(std::uint64_t bits) {
    for (std::int64_t i = -guard_; i < length_ + guard_; ++i) set_bits(i, bits);
  }

  DataType type_ = DataType::none;
  std::int64_t length_ = 0;
  std::int64_t guard_ = 0;
  std::int64_t first_ = 0;
  std::uint64_t poison_ = 0;
  std::size_t size_ = 0;
  std::unique_ptr<unsigned char, Free> bytes_;
};

}  // namespace isofold_test
