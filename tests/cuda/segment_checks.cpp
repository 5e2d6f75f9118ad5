#include "cuda/segment_checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>

#include "cuda/segment_call.hpp"

namespace isofold_test {
namespace {

using isofold::SegmentValue;

constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16};

double held(DataType type, double x) { return decode(type, encode(type, x)); }

void append_normal(Random& random, SegmentBatch& batch, std::int64_t length, bool cancels) {
  const std::size_t start = batch.a.size();
  for (std::int64_t i = 0; i < length; ++i) {
    batch.a.push_back(held(batch.type, random.normal()));
    batch.b.push_back(held(batch.type, random.normal()));
  }
  for (std::int64_t i = 0; cancels && i < length / 2; ++i) {
    const auto k = start + static_cast<std::size_t>(i);
    const std::size_t other = batch.a.size() - 1 - static_cast<std::size_t>(i);
    batch.a[other] = -batch.a[k];
    batch.b[other] = batch.b[k];
  }
  batch.offsets.push_back(static_cast<std::int64_t>(batch.a.size()));
}

}  // namespace

int check_segment_batches(const BatchRange& batches, std::uint64_t seed) {
  int failed = 0;
  std::int64_t done = 0;
  for (std::int64_t b = batches.first; b < batches.end; b += batches.step) {
    Random random(seed, static_cast<std::uint64_t>(b));
    SegmentCall call;
    const DataType type = kTypes[random.below(4)];
    call.out = random.chance(0.6) ? type : kTypes[random.below(4)];
    call.shift = random.below(9);
    call.second_shift = random.chance(0.5) ? call.shift : random.below(9);
    const std::int64_t longest = random.chance(0.5) ? 40 : (random.chance(0.5) ? 700 : 9000);
    const std::int64_t count = longest == 40 ? 3000 : 500;
    call.batch = random_segments(random, type, count, longest);
    if (random.chance(0.2)) {
      const std::int64_t length = random.between(1, longest);
      call.rows = std::max<std::int64_t>(1, call.total() / length);
      call.batch.a.resize(static_cast<std::size_t>(call.rows * std::min(length, call.total())));
      call.batch.b.resize(call.batch.a.size());
    }
    call.values.clear();
    const std::int64_t reductions = random.chance(0.8) ? random.between(1, 3) : random.between(4, 16);
    for (std::int64_t r = 0; r < reductions; ++r) {
      call.values.push_back(static_cast<SegmentValue>(random.below(3)));
    }
    call.name = "segments, batch " + std::to_string(b) + ", " + name_of(type) + " to " + name_of(call.out) +
                (call.rows > 0 ? ", a rectangle" : "") + ", " + std::to_string(reductions) + " reductions";
    failed += segments_differ(call);
    done += call.segments();
  }
  std::printf("random segments: %lld\n", static_cast<long long>(done));
  return failed;
}

int check_long_segments(std::int64_t longest, std::uint64_t seed) {
  int failed = 0;
  for (const DataType type : kTypes) {
    for (const bool cancels : {false, true}) {
      Random random(seed, cancels ? 1 : 0);
      SegmentCall call;
      call.out = type;
      call.batch.type = type;
      call.name = std::string("long segments, ") + name_of(type) + (cancels ? ", cancelling" : "");
      for (const std::int64_t length : {1LL, 4095LL, 4096LL, 0LL, 4097LL, 5LL, 8191LL, 3LL, 12288LL, 32768LL,
                                        32769LL, 100003LL, 3000000LL, 10000000LL, 100000000LL}) {
        if (length <= longest) append_normal(random, call.batch, length, cancels);
      }
      failed += segments_differ(call);
      call.second_shift = 1;
      failed += segments_differ(call);
    }
  }
  std::printf("long segments\n");
  return failed;
}

int check_segment_places() {
  int failed = 0;
  Random random(3);
  SegmentBatch one;
  one.type = DataType::float32;
  append_normal(random, one, 5000, false);
  SegmentCall alone;
  alone.batch = one;
  alone.name = "a segment alone";
  const SegmentBits expected = segments_on_cpu(alone);
  for (const std::int64_t start :
       {1LL, 2LL, 3LL, 31LL, 33LL, 127LL, 1023LL, 1024LL, 4090LL, 4096LL, 5000LL}) {
    SegmentCall call;
    call.batch.type = one.type;
    call.batch.a.assign(static_cast<std::size_t>(start), NAN);
    call.batch.b = call.batch.a;
    call.batch.offsets.push_back(start);
    call.batch.a.insert(call.batch.a.end(), one.a.begin(), one.a.end());
    call.batch.b.insert(call.batch.b.end(), one.b.begin(), one.b.end());
    call.batch.offsets.push_back(start + 5000);
    call.batch.a.push_back(INFINITY);
    call.batch.b.push_back(0);
    call.batch.offsets.push_back(start + 5001);
    call.name = "a segment from " + std::to_string(start);
    failed += segments_differ(call);
    const SegmentsOnDevice device(call);
    if (!device.enqueue()) return failed + 1;
    check_cuda(cudaDeviceSynchronize(), "segment");
    for (std::size_t v = 0; v < expected.size(); ++v) {
      if (load_bits(device.out[v]->host().data(), call.out, 1) ==
          load_bits(expected[v].data(), call.out, 0)) {
        continue;
      }
      std::printf("%s: not as alone\n", call.name.c_str());
      ++failed;
    }
  }
  // Nothing but empty segments, and none of a rectangle's.
  SegmentCall empty;
  empty.name = "empty segments";
  empty.batch.offsets.assign(100, 0);
  failed += segments_differ(empty);
  SegmentCall none;
  none.name = "no segments";
  failed += segments_differ(none);
  std::printf("segments anywhere\n");
  return failed;
}

int check_bad_segment_offsets() {
  int failed = 0;
  for (const std::vector<std::int64_t>& offsets :
       {std::vector<std::int64_t>{0, 10, 50, 40, 90, 100}, std::vector<std::int64_t>{0, 10, 20},
        std::vector<std::int64_t>{1, 100}, std::vector<std::int64_t>{0, 1000000, 100},
        std::vector<std::int64_t>{0, -5, 100}}) {
    SegmentCall call;
    call.name = "bad offsets of segments";
    call.batch.a.assign(100, 1.0);
    call.batch.b.assign(100, 1.0);
    call.batch.offsets = offsets;
    const SegmentsOnDevice device(call);
    if (!device.enqueue()) return failed + 1;
    check_cuda(cudaDeviceSynchronize(), "bad offsets");
    SegmentBits all_nan;
    for (std::size_t v = 0; v < call.values.size(); ++v) {
      all_nan.push_back(stored(call.out, std::vector<double>(offsets.size() - 1, NAN)));
    }
    if (!device.agrees(all_nan)) ++failed;
  }
  std::printf("bad offsets of segments\n");
  return failed;
}

}  // namespace isofold_test
