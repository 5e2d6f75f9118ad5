// Random small rows through the library and through exact integers, by the million; every bit must agree.
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "differential/check.hpp"
#include "support/random_batch.hpp"

namespace {

using namespace isofold_test;

constexpr std::size_t kShown = 10;  // mismatches printed in full

constexpr const char* kUsage =
    "differential_tester [--rows N] [--seed S] [--first INDEX] [--threads T] [--family NAME] [--backend "
    "cpu|reference]\n"
    "                    [--chunk-size C] [--max-length L] [--alone-every K]\n"
    "Rows INDEX .. INDEX + N - 1 of the seed's sequence, in batches of 256, one row in K called alone as "
    "well.\n";

struct Options {
  BatchOptions batch;
  std::int64_t rows = 1'000'000;
  std::int64_t first = 0;
  std::int64_t alone_every = 8;
  int threads = 1;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "%s\n%s", message.c_str(), kUsage);
  std::exit(2);
}

std::int64_t parse_count(const std::string& name, const char* text, std::int64_t least) {
  char* end = nullptr;
  const long long number = std::strtoll(text, &end, 10);
  if (end == text || *end != '\0' || number < least) {
    fail(name + " takes a whole number of at least " + std::to_string(least) + ", not '" + text + "'");
  }
  return number;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i += 2) {
    const std::string name = arguments[i];
    if (i + 1 == count) fail(name + " needs a value");
    const char* value = arguments[i + 1];
    if (name == "--rows") {
      options.rows = parse_count(name, value, 0);
    } else if (name == "--first") {
      options.first = parse_count(name, value, 0);
    } else if (name == "--seed") {
      options.batch.seed = static_cast<std::uint64_t>(parse_count(name, value, 0));
    } else if (name == "--threads") {
      options.threads = static_cast<int>(parse_count(name, value, 1));
    } else if (name == "--chunk-size") {
      options.batch.chunk_size = parse_count(name, value, -1);
    } else if (name == "--max-length") {
      options.batch.max_length = parse_count(name, value, 0);
    } else if (name == "--alone-every") {
      options.alone_every = parse_count(name, value, 0);
    } else if (name == "--family") {
      options.batch.family = find_family(value);
      std::string names;
      for (const Family& family : value_families()) names.append(" ").append(family.name);
      if (options.batch.family == nullptr) fail("--family takes one of" + names);
    } else if (name == "--backend" && std::strcmp(value, "cpu") == 0) {
      options.batch.backend = isofold::Backend::cpu;
    } else if (name == "--backend" && std::strcmp(value, "reference") == 0) {
      options.batch.backend = isofold::Backend::reference;
    } else {
      fail("cannot use " + name + " " + value);
    }
  }
  return options;
}

// What all threads add to.
struct Tally {
  std::mutex mutex;
  std::map<std::string_view, std::int64_t> rows_by_family;
  std::set<std::int64_t> failed_rows;
  std::size_t shown = 0;
  std::int64_t single_calls = 0;
  std::int64_t narrow_rows = 0;
  std::int64_t wide_rows = 0;
};

void print_mismatch(const Options& options, const Batch& batch, const Mismatch& mismatch) {
  std::printf("mismatch: row %" PRId64 ", family %s, %s\n", batch.row_index(mismatch.row),
              std::string(batch.families[mismatch.row]).c_str(), mismatch.what.c_str());
  std::printf("  again: differential_tester --seed %" PRIu64 " --first %" PRId64
              " --rows 1 --max-length %" PRId64 " --chunk-size %" PRId64
              " --alone-every 1%s%s --backend %s\n%s",
              options.batch.seed, batch.row_index(mismatch.row), options.batch.max_length,
              options.batch.chunk_size, options.batch.family != nullptr ? " --family " : "",
              options.batch.family != nullptr ? std::string(options.batch.family->name).c_str() : "",
              options.batch.backend == isofold::Backend::cpu ? "cpu" : "reference",
              describe(batch, mismatch.row).c_str());
}

void work(const Options& options, std::atomic<std::int64_t>& next, std::int64_t last, Tally& tally) {
  ExactOracle oracle;
  const auto asked_for = [&](std::int64_t row) {
    return row >= options.first && row < options.first + options.rows;
  };
  for (std::int64_t index = next++; index <= last; index = next++) {
    const Batch batch = make_batch(options.batch, index);
    const BatchReport report = check_batch(batch, oracle, options.alone_every);
    const std::lock_guard lock(tally.mutex);
    tally.single_calls += report.single_calls;
    for (std::size_t k = 0; k < batch.rows.size(); ++k) {
      if (asked_for(batch.row_index(k))) ++tally.rows_by_family[batch.families[k]];
    }
    for (const Mismatch& mismatch : report.mismatches) {
      if (!asked_for(batch.row_index(mismatch.row))) continue;
      tally.failed_rows.insert(batch.row_index(mismatch.row));
      if (tally.shown++ < kShown) print_mismatch(options, batch, mismatch);
    }
  }
  const std::lock_guard lock(tally.mutex);
  tally.narrow_rows += oracle.narrow_rows();
  tally.wide_rows += oracle.wide_rows();
}

}  // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  Tally tally;
  const auto start = std::chrono::steady_clock::now();
  if (options.rows > 0) {
    std::atomic<std::int64_t> next = options.first / kRowsPerBatch;
    const std::int64_t last = (options.first + options.rows - 1) / kRowsPerBatch;
    std::vector<std::thread> threads;
    for (int t = 0; t < options.threads; ++t) {
      threads.emplace_back([&] { work(options, next, last, tally); });
    }
    for (std::thread& thread : threads) thread.join();
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  for (const auto& [family, rows] : tally.rows_by_family) {
    std::printf("  %-20s %12" PRId64 "\n", std::string(family).c_str(), rows);
  }
  const auto failed = static_cast<std::int64_t>(tally.failed_rows.size());
  std::printf("seed %" PRIu64 ", rows %" PRId64 " to %" PRId64 ", %" PRId64
              " also alone; the oracle took %" PRId64 " rows in 128 bits, %" PRId64 " in GMP integers\n",
              options.batch.seed, options.first, options.first + options.rows - 1, tally.single_calls,
              tally.narrow_rows, tally.wide_rows);
  std::printf("%.1f s, %.0f rows per second\n", seconds, static_cast<double>(options.rows) / seconds);
  std::printf("%zu mismatches\n", tally.shown);
  std::printf("%" PRId64 " passed, %" PRId64 " failed\n", options.rows - failed, failed);
  return failed == 0 ? 0 : 1;
}
