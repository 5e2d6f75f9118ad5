// Who does the work. Every executor returns the same bits; only the time differs.
#pragma once

#include <cstdint>

namespace isofold {

enum class Backend : std::uint8_t {
  cpu,        // threads, chunk hulls, merge tree
  reference,  // one thread, long accumulators, short and slow: the oracle
};

struct Executor {
  Backend backend = Backend::cpu;
  // Threads the call may use, the calling one included. 0: the environment's ISOFOLD_NUM_THREADS, else the
  // processors this process may run on. No thread outlives the call, so a later fork() is safe.
  int threads = 0;
  // Elements in a chunk of a long row: a power of two from 32 to 65,536; 0: the tuned default. Changes no
  // bit.
  std::int64_t chunk_size = 0;
  // Polled on the calling thread, between pieces of work; returning true ends the call with
  // StatusCode::interrupted.
  bool (*should_stop)(void* context) = nullptr;
  void* should_stop_context = nullptr;
};

}  // namespace isofold
