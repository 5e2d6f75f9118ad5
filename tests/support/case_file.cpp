#include "support/case_file.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace isofold_test {

namespace {

class Reader {
 public:
  explicit Reader(std::string text) : text_(std::move(text)) {}

  [[noreturn]] void fail(const std::string& message) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(place_), '\n');
    throw std::runtime_error("line " + std::to_string(line) + ": " + message);
  }
  bool accept(char c) {
    skip_space();
    if (place_ == text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected ") + c);
  }
  bool accept(const std::string& word) {
    skip_space();
    if (text_.compare(place_, word.size(), word) != 0) return false;
    place_ += word.size();
    return true;
  }
  std::string string() {
    expect('"');
    const std::size_t end = text_.find('"', place_);
    if (end == std::string::npos) fail("unterminated string");
    std::string result = text_.substr(place_, end - place_);
    if (result.find('\\') != std::string::npos) fail("escapes are not supported");
    place_ = end + 1;
    return result;
  }
  bool boolean() {
    if (accept(std::string("true"))) return true;
    if (accept(std::string("false"))) return false;
    fail("expected true or false");
  }
  double hex_float() {
    const std::string text = string();
    char* end = nullptr;
    const double x = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') fail("not a number: " + text);
    return x;
  }
  std::int64_t integer() {
    skip_space();
    const char* start = text_.c_str() + place_;
    char* end = nullptr;
    const long long x = std::strtoll(start, &end, 10);
    if (end == start) fail("expected an integer");
    place_ += static_cast<std::size_t>(end - start);
    return x;
  }
  template <class T>
  std::vector<T> array(T (Reader::*item)()) {
    std::vector<T> items;
    expect('[');
    if (accept(']')) return items;
    do {
      items.push_back((this->*item)());
    } while (accept(','));
    expect(']');
    return items;
  }
  bool at_end() {
    skip_space();
    return place_ == text_.size();
  }

 private:
  void skip_space() {
    while (place_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
  }

  std::string text_;
  std::size_t place_ = 0;
};

DataType read_type(Reader& reader) {
  const std::string type = reader.string();
  if (type != "float32" && type != "float64") reader.fail("unknown dtype " + type);
  return type == "float32" ? DataType::float32 : DataType::float64;
}

DotCase read_dot_case(Reader& reader) {
  DotCase c;
  reader.expect('{');
  do {
    const std::string key = reader.string();
    reader.expect(':');
    if (key == "name") {
      c.name = reader.string();
    } else if (key == "dtype") {
      c.type = read_type(reader);
    } else if (key == "a") {
      c.a = reader.array(&Reader::hex_float);
    } else if (key == "b") {
      c.b = reader.array(&Reader::hex_float);
    } else if (key == "offsets") {
      c.offsets = reader.array(&Reader::integer);
    } else if (key == "dot") {
      c.dot = reader.array(&Reader::hex_float);
    } else {
      reader.fail("unknown key " + key);
    }
  } while (reader.accept(','));
  reader.expect('}');
  return c;
}

IsotonicCase read_case(Reader& reader) {
  IsotonicCase c;
  reader.expect('{');
  do {
    const std::string key = reader.string();
    reader.expect(':');
    if (key == "name") {
      c.name = reader.string();
    } else if (key == "dtype") {
      c.type = read_type(reader);
    } else if (key == "increasing") {
      c.increasing = reader.boolean();
    } else if (key == "y") {
      c.values = reader.array(&Reader::hex_float);
    } else if (key == "w") {
      if (!reader.accept(std::string("null"))) c.weights = reader.array(&Reader::hex_float);
    } else if (key == "fit") {
      c.fit = reader.array(&Reader::hex_float);
    } else if (key == "block_starts") {
      c.block_starts = reader.array(&Reader::integer);
    } else {
      reader.fail("unknown key " + key);
    }
  } while (reader.accept(','));
  reader.expect('}');
  return c;
}

template <class Case>
std::vector<Case> read_cases(const std::string& path, Case (*read)(Reader&)) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  std::stringstream text;
  text << file.rdbuf();
  Reader reader(text.str());
  std::vector<Case> cases;
  reader.expect('[');
  do {
    cases.push_back(read(reader));
  } while (reader.accept(','));
  reader.expect(']');
  if (!reader.at_end()) reader.fail("text after the array");
  return cases;
}

}  // namespace

std::vector<IsotonicCase> read_isotonic_cases(const std::string& path) { return read_cases(path, read_case); }

std::vector<DotCase> read_dot_cases(const std::string& path) { return read_cases(path, read_dot_case); }

}  // namespace isofold_test
