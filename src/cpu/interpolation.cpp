#include "algorithm/interpolation.hpp"

#include <algorithm>

#include "algorithm/row_view.hpp"
#include "cpu/cpu.hpp"
#include "cpu/parallel.hpp"

namespace isofold::cpu {

Outcome interpolate(const Curves& curves, const std::int64_t* curve_of_point, ConstArray points,
                    std::int64_t count, MutableArray out, const Executor& executor) {
  constexpr std::int64_t kPiece = 4096;
  constexpr std::int64_t kBuffer = 256;
  const Format format = format_of(out.type);
  const bool finished = parallel_for(
      executor, thread_count(executor), count, kPiece, [&](int, std::int64_t begin, std::int64_t end) {
        double buffer[kBuffer];
        for (std::int64_t first = begin; first < end; first += kBuffer) {
          const std::int64_t length = std::min(kBuffer, end - first);
          load(points, first, length, buffer);
          for (std::int64_t i = 0; i < length; ++i) {
            const std::int64_t curve = curve_of_point != nullptr ? curve_of_point[first + i] : 0;
            const std::int64_t knot = curves.offsets[curve];
            buffer[i] = interpolate_at(curves.x + knot, curves.y + knot, curves.offsets[curve + 1] - knot,
                                       buffer[i], format);
          }
          store(out, first, length, buffer);
        }
      });
  return finished ? Outcome::done : Outcome::interrupted;
}

}  // namespace isofold::cpu
