// Jumps between stacks are what its checks forbid.
#undef _FORTIFY_SOURCE

#include "emulator/simt.hpp"

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iostream>
#include <memory>
#include <random>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(SIMT_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

namespace simt {

Index thread_index;
Index block_index;

namespace {

constexpr std::size_t kStack = 256 * 1024;

// Threads that wait for each other; done once all have come.
struct Meeting {
  std::uint32_t mask = 0;     // of a warp: the lanes that meet
  std::uint64_t arrived = 0;  // of a warp: which lanes, of the block: how many
  std::uint64_t generation = 0;
  int votes = 0;
  int last_votes = 0;
  std::uint64_t values[32] = {};
};

// A stack and where what runs on it goes on. Jumps leave the signal mask alone, which saves the kernel's
// time; `registers` is for the first entry. AddressSanitizer has to know which stack is in use.
struct Context {
  jmp_buf place;
  bool entered = false;
  ucontext_t registers;
  const void* stack = nullptr;
  std::size_t stack_size = 0;
  void* fake_stack = nullptr;
};

void switch_to(Context& from, Context& to) {
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&from.fake_stack, to.stack, to.stack_size);
#endif
  from.entered = true;
  if (_setjmp(from.place) == 0) {
    if (to.entered) _longjmp(to.place, 1);
    setcontext(&to.registers);
  }
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(from.fake_stack, nullptr, nullptr);
#endif
}

struct Fiber {
  Context context;
  std::unique_ptr<char[]> stack;
  const Meeting* waits_for = nullptr;
  std::uint64_t waits_past = 0;
  bool done = false;
  std::uint64_t received[32];  // at the last meeting of a warp
};

std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<std::deque<Meeting>> warp_meetings;  // a warp: one for each mask
Meeting block_meeting;
Context scheduler;
unsigned current = 0;
unsigned running = 0;  // threads of the block that have not returned
const std::function<void()>* body = nullptr;
std::uint64_t block_seed = 0;
std::uint64_t thread_seed = 0;

struct Memory {
  void* begin;
  std::size_t size;
};
std::vector<Memory>& poisoned() {
  static std::vector<Memory> list;
  return list;
}

std::vector<unsigned> numbered(unsigned count, std::uint64_t seed) {
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i) order[i] = i;
  if (seed != 0) {
    std::mt19937_64 random(seed);
    std::shuffle(order.begin(), order.end(), random);
  }
  return order;
}

[[noreturn]] void fail(const char* what) {
  std::cerr << "kernel on the host: " << what << " (block " << block_index.x << ", thread " << current
            << ")\n";
  std::abort();
}

void wait(const Meeting& meeting, std::uint64_t generation) {
  Fiber& fiber = *fibers[current];
  fiber.waits_for = &meeting;
  fiber.waits_past = generation;
  const unsigned me = current;
  switch_to(fiber.context, scheduler);
  fibers[me]->waits_for = nullptr;
}

void complete(Meeting& meeting) {
  meeting.last_votes = meeting.votes;
  meeting.arrived = 0;
  meeting.votes = 0;
  ++meeting.generation;
}

// What a fiber runs: a thread of one block, then one of the next.
void start() {
#if defined(SIMT_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &scheduler.stack, &scheduler.stack_size);
#endif
  for (;;) {
    (*body)();
    fibers[current]->done = true;
    --running;
    // Who has returned is not waited for.
    if (block_meeting.arrived > 0 && block_meeting.arrived == running) complete(block_meeting);
    switch_to(fibers[current]->context, scheduler);
  }
}

void add_fiber() {
  fibers.push_back(std::make_unique<Fiber>());
  Fiber& fiber = *fibers.back();
  fiber.stack = std::make_unique<char[]>(kStack);
  Context& context = fiber.context;
  context.stack = fiber.stack.get();
  context.stack_size = kStack;
  getcontext(&context.registers);
  context.registers.uc_stack.ss_sp = fiber.stack.get();
  context.registers.uc_stack.ss_size = kStack;
  context.registers.uc_link = nullptr;
  makecontext(&context.registers, start, 0);
}

void run_block(const std::vector<unsigned>& order) {
  const auto threads = static_cast<unsigned>(order.size());
  while (fibers.size() < threads) add_fiber();
  if (warp_meetings.size() * 32 < threads) warp_meetings.resize((threads + 31) / 32);
  for (const Memory& memory : poisoned()) std::memset(memory.begin, 0xa5, memory.size);
  block_meeting = {};
  running = threads;
  for (unsigned t = 0; t < threads; ++t) {
    fibers[t]->done = false;
    fibers[t]->waits_for = nullptr;
  }
  while (running > 0) {
    bool moved = false;
    for (const unsigned t : order) {
      Fiber& fiber = *fibers[t];
      if (fiber.done || (fiber.waits_for != nullptr && fiber.waits_for->generation == fiber.waits_past))
        continue;
      moved = true;
      current = t;
      thread_index.x = t;
      switch_to(scheduler, fiber.context);
    }
    if (!moved) fail("threads wait for each other for ever");
  }
}

}  // namespace

void shuffle_blocks(std::uint64_t seed) { block_seed = seed; }
void shuffle_threads(std::uint64_t seed) { thread_seed = seed; }
void poison_for_blocks(void* memory, std::size_t size) { poisoned().push_back({memory, size}); }

void launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  body = &kernel;
  const std::vector<unsigned> thread_order = numbered(threads, thread_seed);
  for (const unsigned block : numbered(blocks, block_seed)) {
    block_index.x = block;
    run_block(thread_order);
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
  const unsigned warp = current / 32;
  if ((mask >> lane & 1U) == 0) fail("a lane that its own mask leaves out");
  std::deque<Meeting>& meetings = warp_meetings[warp];
  auto meeting =
      std::find_if(meetings.begin(), meetings.end(), [&](const Meeting& m) { return m.mask == mask; });
  if (meeting == meetings.end()) {
    meetings.emplace_back().mask = mask;
    meeting = meetings.end() - 1;
  }
  meeting->values[lane] = mine;
  meeting->arrived |= std::uint64_t{1} << lane;
  if (meeting->arrived == mask) {
    // Lanes that go on may meet again before the others have looked.
    for (unsigned other = 0; other < 32; ++other) {
      if ((mask >> other & 1U) != 0) {
        std::memcpy(fibers[warp * 32 + other]->received, meeting->values, sizeof meeting->values);
      }
    }
    complete(*meeting);
  } else {
    wait(*meeting, meeting->generation);
  }
  std::memcpy(all, fibers[current]->received, sizeof all);
}

}  // namespace simt
