#include "emulator/simt.hpp"

#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

namespace simt {

Index thread_index;
Index block_index;

namespace {

constexpr std::size_t kStack = 256 * 1024;

// Threads that wait for each other; done once all have come.
struct Meeting {
  std::uint64_t arrived = 0;
  std::uint64_t generation = 0;
  int votes = 0;
  int last_votes = 0;
  std::uint64_t values[32] = {};
  std::uint64_t last_values[32] = {};
};

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  const Meeting* waits_for = nullptr;
  std::uint64_t waits_past = 0;
  bool done = false;
};

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Meeting> warp_meetings;  // 32 a warp: by the lowest lane of the mask
Meeting block_meeting;
ucontext_t scheduler;
unsigned current = 0;
unsigned running = 0;  // threads of the block that have not returned
const std::function<void()>* body = nullptr;
std::uint64_t shuffle_seed = 0;

[[noreturn]] void fail(const char* what) {
  std::cerr << "kernel on the host: " << what << " (block " << block_index.x << ", thread " << current << ")\n";
  std::abort();
}

void wait(const Meeting& meeting, std::uint64_t generation) {
  Fiber& fiber = *fibers[current];
  fiber.waits_for = &meeting;
  fiber.waits_past = generation;
  const unsigned me = current;
  swapcontext(&fiber.context, &scheduler);
  fibers[me]->waits_for = nullptr;
}

void complete(Meeting& meeting) {
  std::memcpy(meeting.last_values, meeting.values, sizeof meeting.values);
  meeting.last_votes = meeting.votes;
  meeting.arrived = 0;
  meeting.votes = 0;
  ++meeting.generation;
}

void start() {
  (*body)();
  fibers[current]->done = true;
  --running;
  // Who has returned is not waited for.
  if (block_meeting.arrived > 0 && block_meeting.arrived == running) complete(block_meeting);
  swapcontext(&fibers[current]->context, &scheduler);
}

void run_block(unsigned threads) {
  while (fibers.size() < threads) {
    fibers.push_back(std::make_unique<Fiber>());
    fibers.back()->stack = std::make_unique<char[]>(kStack);
  }
  warp_meetings.assign((threads + 31) / 32 * 32, {});
  block_meeting = {};
  running = threads;
  for (unsigned t = 0; t < threads; ++t) {
    Fiber& fiber = *fibers[t];
    fiber.done = false;
    fiber.waits_for = nullptr;
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStack;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, start, 0);
  }
  while (running > 0) {
    bool moved = false;
    for (unsigned t = 0; t < threads; ++t) {
      Fiber& fiber = *fibers[t];
      if (fiber.done || (fiber.waits_for != nullptr && fiber.waits_for->generation == fiber.waits_past)) continue;
      moved = true;
      current = t;
      thread_index.x = t;
      swapcontext(&scheduler, &fiber.context);
    }
    if (!moved) fail("threads wait for each other for ever");
  }
}

}  // namespace

void shuffle_blocks(std::uint64_t seed) { shuffle_seed = seed; }

void launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  body = &kernel;
  std::vector<unsigned> order(blocks);
  for (unsigned b = 0; b < blocks; ++b) order[b] = b;
  if (shuffle_seed != 0) {
    std::mt19937_64 random(shuffle_seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  for (const unsigned b : order) {
    block_index.x = b;
    run_block(threads);
  }
}

int barrier(bool vote) {
  Meeting& meeting = block_meeting;
  ++meeting.arrived;
  meeting.votes += vote ? 1 : 0;
  if (meeting.arrived == running) {
    complete(meeting);
  } else {
    wait(meeting, meeting.generation);
  }
  return meeting.last_votes;
}

void meet(std::uint32_t mask, std::uint64_t mine, std::uint64_t (&all)[32]) {
  const unsigned lane = current % 32;
  if ((mask >> lane & 1U) == 0) fail("a lane that its own mask leaves out");
  unsigned lowest = 0;
  while ((mask >> lowest & 1U) == 0) ++lowest;
  Meeting& meeting = warp_meetings[current / 32 * 32 + lowest];
  if ((meeting.arrived >> lane & 1U) != 0) fail("a lane came twice");
  meeting.values[lane] = mine;
  meeting.arrived |= std::uint64_t{1} << lane;
  if (meeting.arrived == mask) {
    complete(meeting);
  } else {
    wait(meeting, meeting.generation);
  }
  std::memcpy(all, meeting.last_values, sizeof all);
}

}  // namespace simt
