// Who does the work. Every executor returns the same bits; only the time differs.
#pragma once

#include <cstdint>

namespace isofold {

enum class Backend : std::uint8_t {
  cpu,        // threads, chunk hulls, merge tree
  reference,  // one thread, long accumulators, short and slow: the oracle
  cuda,       // arrays in device memory; calls enqueue work on a stream and return
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

  // Backend::cuda only; the members above mean nothing there. Every array and offset of the call is memory of
  // the current device, and must stay valid until the stream has passed the call. What cannot be seen from
  // the host is judged on the device and never reported: a row with a NaN, an infinity, a weight that is not
  // positive, or tie offsets that do not cut it from its begin to its end comes out NaN, as one block; the
  // others are untouched by it. Offsets that do not rise from 0 to the number of elements make all of it NaN,
  // every element a block. A gradient takes a row as its block starts cut it and asks for no tie offsets.
  void* stream = nullptr;   // a cudaStream_t; nullptr is the default stream
  void* scratch = nullptr;  // device memory for the call, aligned to 256; nullptr: allocated in stream order
  std::int64_t scratch_bytes = 0;  // see isotonic_regression_scratch, isotonic_gradient_scratch
};

}  // namespace isofold
