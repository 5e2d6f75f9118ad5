#include "cpu/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <sched.h>
#endif

#include "exact/floating_mode.hpp"

namespace isofold::cpu {
namespace {

int processors() {
#if defined(__linux__)
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

class Loop {
 public:
  Loop(const Executor& executor, std::int64_t count, std::int64_t grain, const RangeBody& body)
      : executor_(executor), count_(count), grain_(grain), body_(body) {}

  void work(int worker) {
    const FloatingMode mode;
    try {
      while (!stopped_.load(std::memory_order_relaxed)) {
        if (worker == 0 && executor_.should_stop != nullptr &&
            executor_.should_stop(executor_.should_stop_context)) {
          interrupted_ = true;
          stopped_.store(true, std::memory_order_relaxed);
          return;
        }
        const std::int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
        if (begin >= count_) return;
        body_(worker, begin, std::min(begin + grain_, count_));
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!error_) error_ = std::current_exception();
      stopped_.store(true, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] bool finish() {
    if (error_) std::rethrow_exception(error_);
    return !interrupted_;
  }

 private:
  const Executor& executor_;
  std::int64_t count_;
  std::int64_t grain_;
  const RangeBody& body_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> stopped_{false};
  bool interrupted_ = false;  // written by the calling thread only
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

int thread_count(const Executor& executor) {
  if (executor.threads > 0) return executor.threads;
  if (const char* text = std::getenv("ISOFOLD_NUM_THREADS"); text != nullptr) {
    const int wanted = std::atoi(text);
    if (wanted > 0) return wanted;
  }
  return processors();
}

bool parallel_for(const Executor& executor, int threads, std::int64_t count, std::int64_t grain,
                  const RangeBody& body) {
  if (count <= 0) return true;
  Loop loop(executor, count, grain, body);
  const std::int64_t pieces = (count + grain - 1) / grain;
  const int helpers = static_cast<int>(std::min<std::int64_t>(threads, pieces)) - 1;
  std::vector<std::thread> team;
  try {
    team.reserve(static_cast<std::size_t>(std::max(0, helpers)));
    for (int i = 1; i <= helpers; ++i) team.emplace_back([&loop, i] { loop.work(i); });
  } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    // No more threads to be had: those that started, or the calling one alone, do the work.
  }
  loop.work(0);
  for (std::thread& thread : team) thread.join();
  return loop.finish();
}

}  // namespace isofold::cpu
