// What the solver did, for tests and tuning. Compiled in with ISOFOLD_COUNTERS, else it costs nothing.
#pragma once

#include <atomic>
#include <cstdint>

namespace isofold::cpu {

#if defined(ISOFOLD_COUNTERS)
inline constexpr bool kCounting = true;
#else
inline constexpr bool kCounting = false;
#endif

enum class Count : std::uint8_t {
  merges,             // of neighbouring hulls
  walk_steps,         // turns asked while walking to a bridge
  searches,           // bridges found by search, past the walk's cap
  search_turns,       // turns asked by them
  hull_vertices,      // vertices of all chunk hulls
  root_segments,      // segments of all rows' hulls
  precise_turns,      // turns of a chunk that plain doubles left undecided (tool 2)
  exact_chunks,       // chunks solved by long accumulators (tool 3)
  exact_merge_turns,  // turns of merges decided by long accumulators (tool 3)
  exact_means,        // block means rounded by long accumulators (tool 3)
  number_of_counts
};

class Counters {
 public:
  void add(Count what, std::int64_t amount = 1) {
    if constexpr (kCounting) values_[static_cast<int>(what)].fetch_add(amount, std::memory_order_relaxed);
  }
  [[nodiscard]] std::int64_t operator[](Count what) const {
    return values_[static_cast<int>(what)].load(std::memory_order_relaxed);
  }
  void reset() {
    for (auto& value : values_) value.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> values_[static_cast<int>(Count::number_of_counts)] = {};
};

// Of the whole process.
[[nodiscard]] Counters& counters();

inline void tally(Count what, std::int64_t amount = 1) {
  if constexpr (kCounting) counters().add(what, amount);
}

}  // namespace isofold::cpu
