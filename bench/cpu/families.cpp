#include "families.hpp"

#include <cmath>
#include <random>

namespace isofold_bench {
namespace {

class Draw {
 public:
  Draw(Family family, std::int64_t length)
      : family_(family), last_(length - 1), length_(static_cast<double>(length)) {}

  // Element i of a row, and its weight.
  double value(std::int64_t i, double* weight) {
    const auto x = static_cast<double>(i);
    switch (family_) {
      case Family::noise:
        return noise(x);
      case Family::weighted_noise:
        *weight = 0.5 + uniform_(random_);
        return noise(x);
      case Family::binary:
        return uniform_(random_) < 0.1 + 0.5 * x / length_ ? 1.0 : 0.0;
      case Family::increasing:
        return x / length_;
      case Family::decreasing:
        return -x / length_;
      case Family::constant:
        return 0.1;
      case Family::cliff:
        return i == last_ ? -length_ : x / length_;
      case Family::mirrored_cliff:
        return i == 0 ? length_ : x / length_;
      case Family::sawtooth_9:
        return tooth(i, 9);
      case Family::sawtooth_5003:
        return tooth(i, 5003);
      case Family::blocks_of_ten:
        return 1e-3 * static_cast<double>(i / 10 * 10 - i % 10);
      case Family::ninths:
        return static_cast<double>(i % 9) * 0.1;
      case Family::one_decimal_noise:
        return std::round(10.0 * noise(x)) / 10.0;
      case Family::rates:
        break;
    }
    *weight = std::uniform_int_distribution<int>(1, 300)(random_);
    std::binomial_distribution<int> successes(static_cast<int>(*weight), 0.1 + 0.5 * x / length_);
    return successes(random_) / *weight;
  }

 private:
  double noise(double x) { return 3.0 * x / length_ + normal_(random_); }
  // Teeth that fall back to where they began, on a ramp from 0 to 1: neighbouring teeth differ by little.
  [[nodiscard]] double tooth(std::int64_t i, std::int64_t period) const {
    return 1e-3 * static_cast<double>(i % period) + static_cast<double>(i) / length_;
  }

  Family family_;
  std::int64_t last_;
  double length_;
  std::mt19937_64 random_{20130101};
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
};

bool has_weights(Family family) { return family == Family::weighted_noise || family == Family::rates; }

}  // namespace

template <class T>
Batch<T> make_batch(Family family, std::int64_t rows, std::int64_t length) {
  Draw draw(family, length);
  Batch<T> batch;
  const auto total = static_cast<std::size_t>(rows * length);
  batch.values.reserve(total);
  if (has_weights(family)) batch.weights.reserve(total);
  double weight = 1.0;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t i = 0; i < length; ++i) {
      batch.values.push_back(static_cast<T>(draw.value(i, &weight)));
      if (has_weights(family)) batch.weights.push_back(static_cast<T>(weight));
    }
  }
  return batch;
}

template Batch<float> make_batch<float>(Family, std::int64_t, std::int64_t);
template Batch<double> make_batch<double>(Family, std::int64_t, std::int64_t);

}  // namespace isofold_bench
