// Sums, dot products and norms of the segments of flat arrays: the exact real value of each, rounded once, so
// that it depends on the segment's own elements and on nothing else.
//
// A segment without elements gives +0.0, and so does every sum that is zero. NaN and infinities are those of
// IEEE arithmetic without rounding, and stay in their segment: a NaN term, or infinite terms of both signs,
// give NaN; other infinite terms give their infinity. A term is infinite or NaN only if an element is:
// neither products nor sums overflow on the way. What lies beyond the output's type is rounded to infinity.
#pragma once

#include <cstdint>

#include "isofold/arrays.hpp"
#include "isofold/executor.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"

namespace isofold {

enum class SegmentValue : std::uint8_t {
  sum,   // of a
  dot,   // the sum of a b
  norm,  // the square root of the sum of a a
};

struct SegmentReduction {
  SegmentValue value = SegmentValue::sum;
  ConstArray a;      // rows.total() elements
  ConstArray b;      // as many; only for dot, and its type is free of a's (but see Backend::cuda below)
  MutableArray out;  // rows.count values, of any type
};

// Up to 16 reductions over the same segments, in one pass over the data. Inputs are never written; outputs
// must not overlap them nor each other. On a status other than ok the outputs are unspecified.
//
// Backend::cuda takes a and b of one type. Offsets are judged on the device: if they do not rise from 0 to
// the number of elements, all results are NaN. Work and memory are linear in the elements and the segments.
[[nodiscard]] Status segment_reductions(const SegmentReduction* reductions, std::int64_t count,
                                        const Rows& segments, const Executor& executor = {});

[[nodiscard]] Status segment_sum(ConstArray a, const Rows& segments, MutableArray out,
                                 const Executor& executor = {});
[[nodiscard]] Status segment_dot(ConstArray a, ConstArray b, const Rows& segments, MutableArray out,
                                 const Executor& executor = {});
[[nodiscard]] Status segment_norm(ConstArray a, const Rows& segments, MutableArray out,
                                  const Executor& executor = {});

// For Backend::cuda: the bytes of device memory that `count` reductions over the segments take as
// Executor::scratch.
[[nodiscard]] Status segment_reductions_scratch(const Rows& segments, std::int64_t count,
                                                std::int64_t* bytes);

}  // namespace isofold
