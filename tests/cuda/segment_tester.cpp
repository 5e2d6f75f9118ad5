// Segment reductions and conjugate gradients on the GPU against the CPU, bit by bit.
//
//   segment_tester [--batches N] [--longest L] [--seed S] [--streams 0]
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "cuda/cg_checks.hpp"
#include "cuda/segment_call.hpp"
#include "cuda/segment_checks.hpp"

namespace {

using namespace isofold_test;

SegmentCall streamed_call() {
  Random random(5);
  SegmentCall call;
  call.name = "segments on a stream";
  call.batch = random_segments(random, DataType::float32, 4000, 3000);
  for (const std::int64_t length : {100000, 4096, 700001}) {
    for (std::int64_t i = 0; i < length; ++i) {
      call.batch.a.push_back(static_cast<float>(random.normal()));
      call.batch.b.push_back(static_cast<float>(random.normal()));
    }
    call.batch.offsets.push_back(call.total());
  }
  call.out = DataType::float32;
  return call;
}

// On a stream of its own with scratch of the caller's, and captured in a graph that is replayed over outputs
// and scratch that were overwritten.
int check_streams() {
  int failed = 0;
  const SegmentCall call = streamed_call();
  const SegmentBits expected = segments_on_cpu(call);
  SegmentsOnDevice device(call);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  std::int64_t bytes = 0;
  if (!isofold::segment_reductions_scratch(device.segments, 3, &bytes).ok()) return 1;
  const DeviceArray<unsigned char> scratch(bytes, 0);
  device.executor.stream = stream;
  device.executor.scratch = scratch.data();
  device.executor.scratch_bytes = bytes;
  const auto finished = [&](const char* what) {
    check_cuda(cudaStreamSynchronize(stream), what);
    if (device.agrees(expected) && scratch.margins_intact()) return;
    std::printf("segments on a stream: %s\n", what);
    ++failed;
  };
  check_cuda(cudaDeviceSynchronize(), "inputs");
  if (!device.enqueue()) return 1;
  finished("with the caller's scratch");

  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "capture");
  const bool captured = device.enqueue();
  cudaGraph_t graph = nullptr;
  check_cuda(cudaStreamEndCapture(stream, &graph), "capture");
  if (!captured) return 1;
  cudaGraphExec_t runnable = nullptr;
  check_cuda(cudaGraphInstantiate(&runnable, graph, 0), "graph");
  for (int replay = 0; replay < 3; ++replay) {
    for (const auto& array : device.out) {
      check_cuda(cudaMemsetAsync(array->data(), 0x5a, static_cast<std::size_t>(call.segments()) * 4, stream),
                 "clear");
    }
    check_cuda(cudaMemsetAsync(scratch.data(), 0xff, scratch.bytes(), stream), "clear");
    check_cuda(cudaGraphLaunch(runnable, stream), "replay");
    finished("replayed");
  }
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  std::printf("segments on streams\n");
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  BatchRange batches{200, 0, 1};
  std::int64_t longest = 10000000;
  std::uint64_t seed = 1;
  bool streams = true;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i];
    if (option == "--batches") batches.end = std::atoll(argv[i + 1]);
    if (option == "--longest") longest = std::atoll(argv[i + 1]);
    if (option == "--seed") seed = static_cast<std::uint64_t>(std::atoll(argv[i + 1]));
    if (option == "--streams") streams = std::string(argv[i + 1]) == "1";
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  int failed = check_bad_segment_offsets() + check_segment_places();
  if (streams) failed += check_streams();
  // Long systems take as many steps as they have unknowns: too many for a sanitizer.
  failed += check_conjugate_gradients(longest >= 1000000 ? 111580 : 150, seed);
  failed += check_segment_batches(batches, seed) + check_long_segments(longest, seed);
  std::printf(failed == 0 ? "PASS: GPU and CPU agree bit by bit\n" : "FAIL: %d disagreements\n", failed);
  return failed == 0 ? 0 : 1;
}
