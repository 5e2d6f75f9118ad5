// Random segments through the library and through exact integers, by the million; every bit must agree.
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "support/segment_batch.hpp"
#include "support/segment_oracle.hpp"

namespace {

using namespace isofold_test;
using isofold::Backend;
using isofold::SegmentValue;

constexpr const char* kUsage =
    "segment_differential_tester [--segments N] [--seed S] [--longest L] [--threads T] [--backend "
    "cpu|reference]\n"
    "N segments, in batches of 512: sums, dots and norms, rounded to every type.\n";
constexpr std::int64_t kBatch = 512;
constexpr std::int64_t kShown = 10;

struct Options {
  std::int64_t segments = 100000;
  std::int64_t longest = 5000;
  std::uint64_t seed = 1;
  isofold::Executor executor;
};

constexpr SegmentValue kValues[] = {SegmentValue::sum, SegmentValue::dot, SegmentValue::norm};
constexpr const char* kNames[] = {"sum", "dot", "norm"};

class Tester {
 public:
  explicit Tester(const Options& options) : options_(options) {}

  void run(std::int64_t index) {
    Random random(options_.seed, static_cast<std::uint64_t>(index));
    constexpr DataType kTypes[] = {DataType::float32, DataType::float64, DataType::float32,
                                   DataType::float64, DataType::float16, DataType::bfloat16};
    const DataType type = kTypes[random.below(6)];
    const DataType out = random.chance(0.7) ? type : kTypes[random.below(6)];
    const SegmentBatch batch = random_segments(random, type, kBatch, options_.longest);
    const std::vector<unsigned char> a = stored(type, batch.a);
    const std::vector<unsigned char> b = stored(type, batch.b);
    const auto rows = isofold::Rows::ragged(batch.offsets.data(), kBatch);
    std::vector<unsigned char> found[3];
    isofold::SegmentReduction reductions[3];
    for (int v = 0; v < 3; ++v) {
      found[v].resize(static_cast<std::size_t>(kBatch) * size_of(out));
      reductions[v] = {kValues[v], {a.data(), type}, {}, {found[v].data(), out}};
    }
    reductions[1].b = {b.data(), type};
    const isofold::Status status = isofold::segment_reductions(reductions, 3, rows, options_.executor);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", status.message.c_str());
      std::exit(2);
    }
    for (std::int64_t s = 0; s < kBatch; ++s) {
      for (int v = 0; v < 3; ++v) {
        const auto k = static_cast<std::size_t>(s);
        const std::uint64_t expected =
            oracle_.reduce(kValues[v], batch.a, batch.b, batch.offsets[k], batch.offsets[k + 1], out);
        const std::uint64_t bits = load_bits(found[v].data(), out, s);
        if (bits == expected) continue;
        if (failed++ >= kShown) continue;
        std::printf("mismatch: batch %" PRId64 ", segment %" PRId64 " of %" PRId64
                    " elements, %s, %s of %s to %s: "
                    "%s, not %s\n",
                    index, s, batch.offsets[k + 1] - batch.offsets[k], batch.families[k], kNames[v],
                    name_of(type), name_of(out), hex(decode(out, bits)).c_str(),
                    hex(decode(out, expected)).c_str());
      }
    }
  }

  std::int64_t failed = 0;

 private:
  const Options& options_;
  SegmentOracle oracle_;
};

}  // namespace

int main(int count, char** arguments) {
  Options options;
  options.executor.threads = 1;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    const std::string value = arguments[i + 1];
    if (name == "--segments") options.segments = std::atoll(value.c_str());
    if (name == "--longest") options.longest = std::atoll(value.c_str());
    if (name == "--seed") options.seed = static_cast<std::uint64_t>(std::atoll(value.c_str()));
    if (name == "--threads") options.executor.threads = std::atoi(value.c_str());
    if (name == "--backend" && value == "reference") options.executor.backend = Backend::reference;
  }
  if (count % 2 == 0) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  Tester tester(options);
  const std::int64_t batches = (options.segments + kBatch - 1) / kBatch;
  for (std::int64_t index = 0; index < batches; ++index) tester.run(index);
  std::printf("seed %" PRIu64 ", %" PRId64 " segments, three values each: %" PRId64 " mismatches\n",
              options.seed, batches * kBatch, tester.failed);
  return tester.failed == 0 ? 0 : 1;
}
