#include "curves/content_hash.hpp"

#include <openssl/evp.h>

#include <cstring>
#include <new>

namespace isofold {

struct ContentHash::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() {
    if (context == nullptr || EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  }
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {}
ContentHash::~ContentHash() = default;

void ContentHash::bytes(std::string_view data) {
  EVP_DigestUpdate(state_->context, data.data(), data.size());
}

void ContentHash::byte(int value) {
  const char data = static_cast<char>(value);
  bytes({&data, 1});
}

void ContentHash::u64(std::uint64_t value) {
  char data[8];
  for (int i = 0; i < 8; ++i) data[i] = static_cast<char>((value >> (8 * i)) & 0xFF);
  bytes({data, sizeof data});
}

void ContentHash::f64(double value) {
  const double positive_zero = value + 0.0;
  std::uint64_t bits;
  std::memcpy(&bits, &positive_zero, sizeof bits);
  u64(bits);
}

void ContentHash::text(std::string_view value) {
  u64(value.size());
  bytes(value);
}

std::string ContentHash::digest() const {
  unsigned char data[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  EVP_DigestFinal_ex(state_->context, data, &size);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (unsigned int i = 0; i < size; ++i) {
    result += kDigits[data[i] >> 4];
    result += kDigits[data[i] & 15];
  }
  return result;
}

}  // namespace isofold
