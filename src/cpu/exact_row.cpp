#include "cpu/exact_row.hpp"

#include <algorithm>

namespace isofold::cpu {

void ExactRow::add_elements(std::int64_t begin, std::int64_t end, ExactSums* sums) const {
  constexpr std::int64_t kBuffer = 256;
  double values[kBuffer];
  double weights[kBuffer];
  for (std::int64_t first = begin; first < end; first += kBuffer) {
    const std::int64_t length = std::min(kBuffer, end - first);
    load_values(row_, first, length, values);
    if (row_.weighted()) load_weights(row_, first, length, weights);
    sums->add(values, row_.weighted() ? weights : nullptr, length);
  }
}

ExactSums ExactRow::before(std::int64_t index) const {
  const std::int64_t chunk = index / chunk_size_;
  ExactSums sums = prefix_[static_cast<std::size_t>(chunk)];
  add_elements(chunk * chunk_size_, index, &sums);
  return sums;
}

ExactSums ExactRow::sums(std::int64_t begin, std::int64_t end) const {
  ExactSums result;
  if (end - begin <= 2 * chunk_size_) {
    add_elements(begin, end, &result);
    return result;
  }
  std::call_once(built_, [&] {
    std::vector<ExactSums> prefix;
    ExactSums running;
    for (std::int64_t first = 0; first < row_.length; first += chunk_size_) {
      prefix.push_back(running);
      add_elements(first, std::min(first + chunk_size_, row_.length), &running);
    }
    prefix.push_back(running);
    prefix_ = std::move(prefix);
  });
  // The last entry stands for the row's end, wherever in its chunk that is.
  result = end == row_.length ? prefix_.back() : before(end);
  result -= before(begin);
  return result;
}

}  // namespace isofold::cpu
