// SHA-256 over a curve file's content, as docs/curve_format.md lays it out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace isofold {

class ContentHash {
 public:
  ContentHash();
  ~ContentHash();
  ContentHash(const ContentHash&) = delete;
  ContentHash& operator=(const ContentHash&) = delete;

  void bytes(std::string_view data);
  void byte(int value);
  void u64(std::uint64_t value);
  void f64(double value);  // a zero is +0.0
  void text(std::string_view value);

  // Lower-case hexadecimal; to be asked once.
  [[nodiscard]] std::string digest() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace isofold
