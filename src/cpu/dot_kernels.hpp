// Compensated sums, once for each instruction set: dot_streams.cpp includes this file again and again, under
// another target and in another namespace each time, with ISOFOLD_LANES the width of its registers in bits
// (those of 128 have no fma). Hence no include guard.

// As wide as the registers: wider ones of the compilers' notation go through memory.
inline constexpr int kWidth = ISOFOLD_LANES / 64;
using Lanes __attribute__((vector_size(8 * kWidth))) = double;
using Words __attribute__((vector_size(8 * kWidth))) = std::int64_t;
using Floats __attribute__((vector_size(4 * kWidth))) = float;

inline __attribute__((always_inline)) void load_terms(const double* from, Lanes& to) {
  __builtin_memcpy(&to, from, sizeof to);
}
inline __attribute__((always_inline)) void load_terms(const float* from, Lanes& to) {
  Floats narrow;
  __builtin_memcpy(&narrow, from, sizeof narrow);
  to = __builtin_convertvector(narrow, Lanes);
}

// What a b loses when it is rounded to `product`.
inline __attribute__((always_inline)) void product_error(const Lanes& a, const Lanes& b, const Lanes& product,
                                                         Lanes& lost) {
#if ISOFOLD_LANES == 512
  lost = (Lanes)_mm512_fmsub_pd((__m512d)a, (__m512d)b, (__m512d)product);
#elif ISOFOLD_LANES == 256
  lost = (Lanes)_mm256_fmsub_pd((__m256d)a, (__m256d)b, (__m256d)product);
#else
  // Dekker 1971, from halves of 26 bits. Where these overflow, so does the certificate.
  const Lanes a_wide = 134217729.0 * a;
  const Lanes b_wide = 134217729.0 * b;
  const Lanes a_high = a_wide - (a_wide - a);
  const Lanes b_high = b_wide - (b_wide - b);
  const Lanes a_low = a - a_high;
  const Lanes b_low = b - b_high;
  lost = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low;
#endif
}

struct LaneSums {
  Lanes sum{};
  Lanes lost{};
  Lanes spread{};
};

// One term a lane; `b` is null for a sum. Products of floats are exact in doubles.
template <class T>
inline __attribute__((always_inline)) void add_terms(const T* a, const T* b, LaneSums& lanes) {
  const Words magnitude_bits = Words{} + INT64_MAX;
  Lanes term;
  load_terms(a, term);
  Lanes lost{};
  if (b != nullptr) {
    const Lanes left = term;
    Lanes right;
    load_terms(b, right);
    term = left * right;
    if constexpr (sizeof(T) == sizeof(double)) product_error(left, right, term, lost);
  }
  const Lanes sum = lanes.sum + term;
  const Lanes term_part = sum - lanes.sum;
  const Lanes sum_part = sum - term_part;
  Lanes rest = (lanes.sum - sum_part) + (term - term_part);
  if (sizeof(T) == sizeof(double) && b != nullptr) rest += lost;
  lanes.lost += rest;
  lanes.spread += (Lanes)((Words)rest & magnitude_bits);
  lanes.sum = sum;
}

template <class T>
inline __attribute__((always_inline)) CompensatedSum compensated(const T* a, const T* b, std::int64_t count) {
  constexpr int kChains = 2;  // side by side, they hide the additions' latency
  constexpr std::int64_t kAhead = 2048 / sizeof(T);
  LaneSums chains[kChains];
  std::int64_t i = 0;
  std::int64_t terms = 0;  // of a lane
  for (; i + kChains * kWidth <= count; i += kChains * kWidth) {
    // The processor's own prefetching stops at the ends of pages.
    __builtin_prefetch(a + i + kAhead);
    if (b != nullptr) __builtin_prefetch(b + i + kAhead);
#pragma GCC unroll 2
    for (int c = 0; c < kChains; ++c) {
      add_terms(a + i + c * kWidth, b != nullptr ? b + i + c * kWidth : nullptr, chains[c]);
    }
    ++terms;
  }
  for (; i + kWidth <= count; i += kWidth) {
    add_terms(a + i, b != nullptr ? b + i : nullptr, chains[0]);
    ++terms;
  }
  if (i < count) {
    T rest[2][kWidth] = {};
    for (int lane = 0; i + lane < count; ++lane) {
      rest[0][lane] = a[i + lane];
      if (b != nullptr) rest[1][lane] = b[i + lane];
    }
    add_terms(rest[0], b != nullptr ? rest[1] : nullptr, chains[0]);
    ++terms;
  }
  const bool exact_terms = sizeof(T) == sizeof(float) || b == nullptr;
  CompensatedSum all;
  const int used = count < kChains * kWidth ? 1 : kChains;
  for (int c = 0; c < used; ++c) {
    CompensatedSum lane[kWidth];
    for (int k = 0; k < kWidth; ++k) {
      lane[k] = {chains[c].sum[k], chains[c].lost[k], lane_error(chains[c].spread[k], terms, exact_terms)};
    }
    for (int half = kWidth / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) lane[k] = lane[k] + lane[k + half];
    }
    all = c == 0 ? lane[0] : all + lane[0];
  }
  return all;
}

inline CompensatedSum sum_floats(const float* a, std::int64_t count) {
  return compensated<float>(a, nullptr, count);
}
inline CompensatedSum sum_doubles(const double* a, std::int64_t count) {
  return compensated<double>(a, nullptr, count);
}
inline CompensatedSum dot_floats(const float* a, const float* b, std::int64_t count) {
  return compensated(a, b, count);
}
inline CompensatedSum dot_doubles(const double* a, const double* b, std::int64_t count) {
  return compensated(a, b, count);
}

constexpr DotKernels kKernels{sum_floats, sum_doubles, dot_floats, dot_doubles};
