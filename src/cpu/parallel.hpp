// A loop over threads that live no longer than the loop, so that a process may fork between calls.
#pragma once

#include <cstdint>
#include <functional>

#include "isofold/executor.hpp"

namespace isofold::cpu {

// executor.threads, or where that is 0 the environment's ISOFOLD_NUM_THREADS, or the processors of this
// process.
[[nodiscard]] int thread_count(const Executor& executor);

// Calls body(worker, begin, end) over [0, count) in pieces of `grain`, taken in order by up to `threads`
// workers, the calling thread being worker 0. Polls executor.should_stop between pieces. Every worker runs in
// the floating-point mode that the certificates assume. Returns false when stopped; rethrows what a body
// threw.
using RangeBody = std::function<void(int worker, std::int64_t begin, std::int64_t end)>;
[[nodiscard]] bool parallel_for(const Executor& executor, int threads, std::int64_t count, std::int64_t grain,
                                const RangeBody& body);

}  // namespace isofold::cpu
