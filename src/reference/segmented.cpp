// Sums, dots and norms of segments by long accumulators, one segment after the other.
#include <cmath>

#include "algorithm/row_view.hpp"
#include "exact/long_accumulator.hpp"
#include "exact/rounded_number.hpp"
#include "exact/rounded_quotient.hpp"
#include "reference/reference.hpp"

namespace isofold::reference {
namespace {

double reduced(const SegmentReduction& reduction, std::int64_t begin, std::int64_t end) {
  const Format format = format_of(reduction.out.type);
  ProductAccumulator total;
  double not_finite = 0.0;  // the sum of the terms that are not finite, by IEEE arithmetic
  for (std::int64_t i = begin; i < end; ++i) {
    double x = 0.0;
    double y = 1.0;
    load(reduction.a, i, 1, &x);
    if (reduction.value == SegmentValue::norm) y = x;
    if (reduction.value == SegmentValue::dot) load(reduction.b, i, 1, &y);
    if (std::isfinite(x) && std::isfinite(y)) {
      total.add_product(x, y);
    } else {
      not_finite += x * y;
    }
  }
  if (not_finite != 0.0) return not_finite;
  if (reduction.value == SegmentValue::norm) return rounded_root(total.value(), format);
  return exact_quotient(total.value(), exact_integer(1), format);
}

}  // namespace

Outcome segment_reductions(const SegmentReduction* reductions, std::int64_t count, const Rows& segments) {
  for (std::int64_t r = 0; r < count; ++r) {
    for (std::int64_t s = 0; s < segments.count; ++s) {
      const double value = reduced(reductions[r], segments.begin(s), segments.end(s));
      store(reductions[r].out, s, 1, &value);
    }
  }
  return Outcome::done;
}

}  // namespace isofold::reference
