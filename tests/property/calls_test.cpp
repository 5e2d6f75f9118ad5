// How a call behaves towards its process: interruption, threads, fork, environment, super-linear traps.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

#include "isofold/interpolation.hpp"
#include "support/long_row.hpp"

namespace isofold_test {
namespace {

using isofold::StatusCode;

// Says stop at the poll after `allowed` others, and notes who polls.
struct Stopper {
  std::int64_t allowed = 0;
  std::int64_t polls = 0;
  std::thread::id thread = std::this_thread::get_id();
  bool elsewhere = false;

  static bool poll(void* context) {
    auto* self = static_cast<Stopper*>(context);
    self->elsewhere = self->elsewhere || std::this_thread::get_id() != self->thread;
    return self->polls++ >= self->allowed;
  }
  void attach(isofold::Executor& executor) {
    executor.should_stop = poll;
    executor.should_stop_context = this;
  }
};

LongRow noise(std::int64_t length) {
  return make_long_row(*find_family("ramp-noise"), length,
                       {DataType::float64, Weighting::none, true, true, 600});
}

TEST(Interruption, StopsWhereverItIsAsked) {
  LongRow row = noise(400000);
  row.call.offsets = {0, 300000, 300001, 400000};
  for (const int threads : {1, 2, 7}) {
    row.call.executor = {};
    row.call.executor.threads = threads;
    const FitAnswer undisturbed = run_fit(row.call);
    Stopper patient{std::int64_t{1} << 60};
    patient.attach(row.call.executor);
    const FitAnswer polled = run_fit(row.call);
    ASSERT_TRUE(polled.status.ok());
    EXPECT_TRUE(polled.bits == undisturbed.bits);
    EXPECT_FALSE(patient.elsewhere) << "polled on another thread";
    EXPECT_GE(patient.polls, 4) << "too rarely for 400,000 elements";
    for (std::int64_t allowed = 0; allowed < 2; ++allowed) {
      Stopper stopper{allowed};
      stopper.attach(row.call.executor);
      const isofold::Status status = run_fit(row.call).status;
      EXPECT_EQ(status.code, StatusCode::interrupted);
      EXPECT_FALSE(status.message.empty());
      EXPECT_LE(stopper.polls, allowed + 1) << "went on after being told to stop";
    }
    Stopper stopper;
    stopper.attach(row.call.executor);
    EXPECT_EQ(run_gradient(row.call, undisturbed.starts, row.gradient).status.code, StatusCode::interrupted);
    const double knots[2] = {-100, 100};
    std::vector<double> out(row.call.values.size());
    EXPECT_EQ(isofold::interpolate({knots, knots, 2}, row.call.values.data(),
                                   static_cast<std::int64_t>(out.size()), out.data(), row.call.executor)
                  .code,
              StatusCode::interrupted);
  }
}

TEST(Interruption, OneChunkRowsArePolledToo) {
  LongRow row = noise(300000);
  row.call.offsets.clear();
  for (std::int64_t i = 0; i <= 300000; i += 100) row.call.offsets.push_back(i);
  row.call.executor.threads = 1;
  Stopper stopper{3};
  stopper.attach(row.call.executor);
  EXPECT_EQ(run_fit(row.call).status.code, StatusCode::interrupted);
}

std::ptrdiff_t running_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                       std::filesystem::directory_iterator());
}

TEST(Threads, NoneOutlivesTheCall) {
  if (!std::filesystem::exists("/proc/self/task")) GTEST_SKIP() << "no /proc";
  std::thread([] {}).join();  // a sanitizer's own thread starts with the first one, and stays
  const std::ptrdiff_t before = running_threads();
  LongRow row = noise(500000);
  row.call.executor.threads = 7;
  ASSERT_TRUE(run_fit(row.call).status.ok());
  EXPECT_EQ(running_threads(), before);
}

TEST(Threads, ForkedChildrenMayCallAgain) {
  LongRow row = noise(300000);
  row.call.executor.threads = 3;
  const FitAnswer parent = run_fit(row.call);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(run_fit(row.call).bits == parent.bits ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Threads, CallsSideBySideDoNotMix) {
  const LongRow first = noise(60000);
  const LongRow second =
      make_long_row(*find_family("near-ties"), 60000, {DataType::float32, Weighting::any, false, false, 601});
  const FitAnswer first_answer = run_fit(first.call);
  const FitAnswer second_answer = run_fit(second.call);
  std::vector<std::thread> team;
  std::vector<int> right(8, 0);
  for (std::size_t t = 0; t < right.size(); ++t) {
    team.emplace_back([&, t] {
      for (int k = 0; k < 5; ++k) {
        const bool even = (t + static_cast<std::size_t>(k)) % 2 == 0;
        right[t] +=
            run_fit(even ? first.call : second.call).bits == (even ? first_answer : second_answer).bits ? 1
                                                                                                        : 0;
      }
    });
  }
  for (std::thread& thread : team) thread.join();
  EXPECT_EQ(right, std::vector<int>(8, 5));
}

TEST(Threads, TheEnvironmentSetsTheDefault) {
  LongRow row = noise(300000);
  const FitAnswer expected = run_fit(row.call);
  for (const char* text : {"1", "3", "0", "-2", "many", ""}) {
    ASSERT_EQ(setenv("ISOFOLD_NUM_THREADS", text, 1), 0);
    row.call.executor.threads = 0;
    EXPECT_TRUE(run_fit(row.call).bits == expected.bits) << text;
  }
  unsetenv("ISOFOLD_NUM_THREADS");
}

// Rows on which a quadratic solver would take hours: they need no clock, only an end.
Doubles ramp(std::int64_t from, std::int64_t to) {
  Doubles values;
  for (std::int64_t k = from; k < to; ++k) values.push_back(static_cast<double>(k));
  return values;
}

TEST(SuperlinearTraps, RampsThatPoolToZero) {
  constexpr std::int64_t n = 1000000;
  LongRow row;
  for (const auto& [from, to] : {std::pair{std::int64_t{0}, n}, {-(n - 1), n}, {-(n - 1), std::int64_t{1}}}) {
    const Doubles part = ramp(from, to);
    row.call.values.insert(row.call.values.end(), part.begin(), part.end());
  }
  for (const std::int64_t chunk_size : {0, 32, 65536}) {
    row.call.executor.chunk_size = chunk_size;
    const FitAnswer answer = run_fit(row.call);
    ASSERT_TRUE(answer.status.ok());
    EXPECT_TRUE(answer.fit(DataType::float64) == Doubles(row.call.values.size(), 0.0));
    EXPECT_EQ(answer.blocks(), std::vector<std::int64_t>{0});
  }
}

TEST(SuperlinearTraps, FallingWithOddIndicesLowered) {
  constexpr std::int64_t n = 4000000;
  LongRow row;
  for (std::int64_t i = 0; i < n; ++i)
    row.call.values.push_back(static_cast<double>(n - i) - (i % 2 != 0 ? 1.5 : 0.0));
  for (const std::int64_t chunk_size : {0, 32}) {
    row.call.executor.chunk_size = chunk_size;
    const FitAnswer answer = run_fit(row.call);
    ASSERT_TRUE(answer.status.ok());
    EXPECT_TRUE(answer.fit(DataType::float64) ==
                Doubles(row.call.values.size(), static_cast<double>(n + 1) / 2 - 0.75));
  }
}

TEST(SuperlinearTraps, CliffsAtEitherEnd) {
  constexpr std::int64_t n = 4000000;
  for (const bool mirrored : {false, true}) {
    LongRow row;
    row.call.values = ramp(0, n);
    // The mean of 0 .. n - 2 and the last value is far below 0; mirrored, the first far above n.
    if (mirrored) {
      row.call.values.front() = 1e15;
    } else {
      row.call.values.back() = -1e15;
    }
    for (const std::int64_t chunk_size : {0, 32}) {
      row.call.executor.chunk_size = chunk_size;
      const FitAnswer answer = run_fit(row.call);
      ASSERT_TRUE(answer.status.ok());
      EXPECT_EQ(answer.blocks(), std::vector<std::int64_t>{0});
    }
  }
}

TEST(SuperlinearTraps, AMillionTinyRows) {
  LongRow row;
  Random random(602);
  row.call.offsets = {0};
  for (int k = 0; k < 1000000; ++k) {
    for (std::int64_t i = random.below(5); i > 0; --i) row.call.values.push_back(random.unit());
    row.call.offsets.push_back(static_cast<std::int64_t>(row.call.values.size()));
  }
  row.call.executor.threads = 2;
  const FitAnswer answer = run_fit(row.call);
  ASSERT_TRUE(answer.status.ok());
  for (std::size_t r = 0; r + 1 < row.call.offsets.size(); ++r) {
    const auto begin = static_cast<std::size_t>(row.call.offsets[r]);
    const auto end = static_cast<std::size_t>(row.call.offsets[r + 1]);
    ASSERT_TRUE(begin == end || answer.starts[begin] == 1) << "row " << r;
    for (std::size_t i = begin + 1; i < end; ++i) {
      ASSERT_LE(decode(DataType::float64, answer.bits[i - 1]), decode(DataType::float64, answer.bits[i]));
    }
  }
}

}  // namespace
}  // namespace isofold_test
