// Picks, once, the best build of the streaming passes that this processor runs. All of them compute the same
// bits: contraction is off, and lanes are added up in one order whatever the width of the registers.
#include "cpu/streaming.hpp"

#include <cmath>
#include <limits>

#include "cpu/instruction_set.hpp"
#include "cpu/vector_lanes.hpp"

namespace isofold::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Kernels {
  Statistics (*statistics)(const double*, std::int64_t);
  void (*multiply)(const double*, const double*, std::int64_t, double*);
  void (*prefix_sums)(const double*, std::int64_t, double*);
  void (*rising_words)(const double*, std::int64_t, std::uint32_t*);
  void (*window_words)(const double*, std::int64_t, std::uint32_t*);
  DoubleDouble (*pair_sum)(const double*, const double*, std::int64_t);
  void (*pair_sums_of_tiles)(const double*, const double*, std::int64_t, DoubleDouble*);
  Statistics (*scan_tiles)(const double*, std::int64_t, DoubleDouble*, double*);
};

#define ISOFOLD_KERNELS "cpu/streaming_kernels.hpp"
#include "cpu/kernels_by_instruction_set.hpp"

}  // namespace

Statistics statistics(const double* values, std::int64_t count) {
  return kernels().statistics(values, count);
}
void multiply(const double* a, const double* b, std::int64_t count, double* out) {
  kernels().multiply(a, b, count, out);
}
void prefix_sums(const double* terms, std::int64_t count, double* out) {
  kernels().prefix_sums(terms, count, out);
}
void rising_words(const double* values, std::int64_t words, std::uint32_t* out) {
  kernels().rising_words(values, words, out);
}
void window_words(const double* values, std::int64_t words, std::uint32_t* out) {
  kernels().window_words(values, words, out);
}
DoubleDouble pair_sum(const double* values, const double* weights, std::int64_t count) {
  return kernels().pair_sum(values, weights, count);
}
void pair_sums_of_tiles(const double* values, const double* weights, std::int64_t tiles, DoubleDouble* out) {
  kernels().pair_sums_of_tiles(values, weights, tiles, out);
}
Statistics scan_tiles(const double* values, std::int64_t tiles, DoubleDouble* totals, double* depths) {
  return kernels().scan_tiles(values, tiles, totals, depths);
}

}  // namespace isofold::cpu
