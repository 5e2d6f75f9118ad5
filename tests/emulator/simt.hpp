// Runs CUDA kernels on the host, thread by thread: every thread of a block is a fiber that goes on until it
// has to wait for others, at a barrier or a warp operation. Blocks run one after the other, and so do the
// threads between two waits, in an order that may be shuffled: one of those a GPU may choose. Slow, exact,
// and it knows when threads wait for each other for ever.
//
// This is what the unit tests of src/cuda stand on where there is no GPU; include/ holds the few CUDA names
// that the kernels use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace simt {

struct Index {
  unsigned x = 0;
  unsigned y = 0;
  unsigned z = 0;
};

extern Index thread_index;
extern Index block_index;

// Runs `kernel` for every thread of every block.
void launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel);

// The order of blocks, and of a block's threads between two waits, in the launches to come: 0 is rising,
// another number seeds a shuffle.
void shuffle_blocks(std::uint64_t seed);
void shuffle_threads(std::uint64_t seed);

// Memory that is overwritten before each block begins, as shared memory may be.
void poison_for_blocks(void* memory, std::size_t size);

// All threads of the block; how many of them say yes.
int barrier(bool vote);

// The lanes of the calling thread's warp in `mask`: gives each what all of them hold, by lane.
void meet(std::uint32_t mask, std::uint64_t mine, std::uint64_t (&all)[32]);

}  // namespace simt
