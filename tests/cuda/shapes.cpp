#include "cuda/shapes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <thread>
#include <type_traits>

namespace isofold_test {
namespace {

// A counter-based generator, so that a long row is filled by all cores and is the same on any.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

struct At {
  std::int64_t i;
  std::int64_t count;
  std::uint64_t seed;
  bool single_precision;

  [[nodiscard]] double t() const { return static_cast<double>(i) / static_cast<double>(count); }
  [[nodiscard]] double uniform(std::uint64_t stream) const {
    return (static_cast<double>(mixed(mixed(seed * 64 + stream) + static_cast<std::uint64_t>(i)) >> 11) +
            0.5) *
           0x1p-53;
  }
  [[nodiscard]] double normal() const {
    return std::sqrt(-2 * std::log(uniform(0))) * std::cos(6.283185307179586 * uniform(1));
  }
};

// Floats one after another, from 1 on or, in float32, from the one with these bits.
double consecutive(const At& at, std::uint32_t first_bits = 0x3f800000U) {
  if (at.single_precision) {
    const auto bits = first_bits + static_cast<std::uint32_t>(at.i & 0x3fffffff);
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  const auto bits = 0x3ff0000000000000ULL + static_cast<std::uint64_t>(at.i);
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

double integral_weight(const At& at) {
  return 1 + static_cast<double>(static_cast<int>(at.uniform(2) * 999));
}

struct Shape {
  std::function<double(const At&)> value;
  std::function<double(const At&)> weight;
};

const std::map<std::string, Shape>& shapes() {
  static const std::map<std::string, Shape> all = {
      {"noise", {[](const At& a) { return 3 * a.t() + a.normal(); }, nullptr}},
      {"labels",
       {[](const At& a) { return a.uniform(0) < 1 / (1 + std::exp(3 - 6 * a.t())) ? 1.0 : 0.0; }, nullptr}},
      {"decreasing", {[](const At& a) { return -3 * a.t() + 0.1 * a.normal(); }, nullptr}},
      {"constant", {[](const At&) { return 0.7; }, nullptr}},
      {"increasing", {[](const At& a) { return std::sqrt(static_cast<double>(a.i) + 1); }, nullptr}},
      {"consecutive", {[](const At& a) { return consecutive(a); }, nullptr}},
      {"consecutive_small", {[](const At& a) { return consecutive(a, 0x3a000000U); }, nullptr}},
      {"labels_straight",
       {[](const At& a) { return a.uniform(0) < 0.02 + 0.96 * a.t() ? 1.0 : 0.0; }, nullptr}},
      {"steep_noise", {[](const At& a) { return 0.1 * static_cast<double>(a.i) + a.normal(); }, nullptr}},
      {"rising_then_noise",
       {[](const At& a) { return a.i < a.count / 2 ? 0.125 * a.t() - 10 : 3 * a.t() + a.normal(); },
        nullptr}},
      {"tens",
       {[](const At& a) {
          return std::floor(static_cast<double>(a.i) / 10) - 0.01 * static_cast<double>(a.i % 10);
        },
        nullptr}},
      {"half",
       {[](const At& a) { return a.i * 2 < a.count ? a.normal() : 10 + static_cast<double>(a.i) * 1e-6; },
        nullptr}},
      {"sawtooth9", {[](const At& a) { return static_cast<double>(a.i % 9); }, nullptr}},
      {"sawtooth5003", {[](const At& a) { return static_cast<double>(a.i % 5003) * 1e-3 + a.t(); }, nullptr}},
      {"sawtooth1e5", {[](const At& a) { return static_cast<double>(a.i % 100000) * 1e-3; }, nullptr}},
      {"ninths", {[](const At& a) { return static_cast<double>(a.i % 9) * 0.1; }, nullptr}},
      {"decimals", {[](const At& a) { return std::round(10 * (3 * a.t() + a.normal())) / 10; }, nullptr}},
      {"cliff",
       {[](const At& a) { return a.i == a.count - 1 ? -1e7 : static_cast<double>(a.i) * 0.125; }, nullptr}},
      {"mirrored_cliff",
       {[](const At& a) { return a.i == 0 ? 1e7 : static_cast<double>(a.i) * 0.125; }, nullptr}},
      {"cancel3", {[](const At& a) { return (a.i % 2 == 0 ? 1e3 : -1e3) + a.normal() + a.t(); }, nullptr}},
      {"cancel7", {[](const At& a) { return (a.i % 2 == 0 ? 1e7 : -1e7) + a.normal() + a.t(); }, nullptr}},
      {"cancel12", {[](const At& a) { return (a.i % 2 == 0 ? 1e12 : -1e12) + a.normal() + a.t(); }, nullptr}},
      {"rates",
       {[](const At& a) { return std::floor(a.uniform(0) * (integral_weight(a) + 1)) / integral_weight(a); },
        integral_weight}},
      {"extreme_weights",
       {[](const At& a) { return 3 * a.t() + a.normal(); },
        [](const At& a) { return std::exp(16 * a.uniform(3) - 8); }}},
      {"tiny", {[](const At& a) { return 1e-30 * (3 * a.t() + a.normal()); }, nullptr}},
      {"huge", {[](const At& a) { return 1e30 * (3 * a.t() + a.normal()); }, nullptr}},
      {"subnormal",
       {[](const At& a) {
          const double unit = a.single_precision ? 0x1p-149 : 0x1p-1074;
          return std::round(300 * a.t() + 100 * a.normal()) * unit;
        },
        nullptr}},
      // Few values that are so small that sums do not fit a double; and half of them.
      {"specks",
       {[](const At& a) {
          return (3 * a.t() + a.normal()) * (a.i % 331 == 7 ? std::exp2(-20 - 20 * a.uniform(4)) : 1.0);
        },
        nullptr}},
      {"scales", {[](const At& a) { return a.normal() * (2 * a.i < a.count ? 1.0 : 1e-10); }, nullptr}},
      // Sums of neighbours overflow.
      {"largest",
       {[](const At& a) {
          return (a.single_precision ? 3e38 : 1.7e308) * (0.6 + 0.39 * a.t() - 1e-7 * a.uniform(0));
        },
        nullptr}},
      {"wide",
       {[](const At& a) {
          return a.normal() * std::exp((a.single_precision ? 120 : 1000) * (a.uniform(4) - 0.5));
        },
        nullptr}},
  };
  return all;
}

// Calls work(begin, end) for parts of 0 .. count.
template <class Work>
void on_all_cores(std::int64_t count, Work work) {
  const std::int64_t workers = count < 100000 ? 1 : std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::thread> threads;
  for (std::int64_t w = 0; w < workers; ++w) {
    threads.emplace_back(work, count * w / workers, count * (w + 1) / workers);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

const std::vector<std::string>& shape_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> list;
    for (const auto& [name, shape] : shapes()) list.push_back(name);
    return list;
  }();
  return names;
}

void fill_shape(const std::string& name, std::int64_t count, std::uint64_t seed, bool single_precision,
                std::vector<double>& values, std::vector<double>& weights) {
  const auto found = shapes().find(name);
  if (found == shapes().end()) throw std::invalid_argument("no shape " + name);
  const Shape& shape = found->second;
  values.resize(static_cast<std::size_t>(count));
  weights.resize(shape.weight ? static_cast<std::size_t>(count) : 0);
  const auto narrow = [&](double x) {
    return single_precision ? static_cast<double>(static_cast<float>(x)) : x;
  };
  const auto fill = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const At at{i, count, seed, single_precision};
      values[static_cast<std::size_t>(i)] = narrow(shape.value(at));
      if (shape.weight) weights[static_cast<std::size_t>(i)] = narrow(shape.weight(at));
    }
  };
  on_all_cores(count, fill);
}

template <class T>
bool fill_rows(const std::string& name, const std::vector<std::int64_t>& offsets, std::uint64_t seed,
               T* values, T* weights) {
  const auto found = shapes().find(name);
  if (found == shapes().end()) throw std::invalid_argument("no shape " + name);
  const Shape& shape = found->second;
  on_all_cores(offsets.back(), [&](std::int64_t begin, std::int64_t end) {
    auto row = std::upper_bound(offsets.begin(), offsets.end(), begin) - 1;
    for (std::int64_t i = begin; i < end; ++row) {
      const std::uint64_t row_seed = seed + static_cast<std::uint64_t>(row - offsets.begin());
      for (const std::int64_t row_end = std::min(row[1], end); i < row_end; ++i) {
        const At at{i - *row, row[1] - *row, row_seed, std::is_same_v<T, float>};
        values[i] = static_cast<T>(shape.value(at));
        if (shape.weight) weights[i] = static_cast<T>(shape.weight(at));
      }
    }
  });
  return shape.weight != nullptr;
}
template bool fill_rows(const std::string&, const std::vector<std::int64_t>&, std::uint64_t, float*, float*);
template bool fill_rows(const std::string&, const std::vector<std::int64_t>&, std::uint64_t, double*,
                        double*);

}  // namespace isofold_test
