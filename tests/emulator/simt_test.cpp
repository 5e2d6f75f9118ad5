// The emulator itself: what its barriers and warp operations give, and that it reports threads that hang.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "cuda/start_kernel.cuh"
#include "cuda/team.cuh"
#include "emulator/simt.hpp"

namespace isofold_test {
namespace {

constexpr unsigned kAll = 0xffffffffU;

class Simt : public testing::Test {
 protected:
  void TearDown() override {
    simt::shuffle_blocks(0);
    simt::shuffle_threads(0);
  }
};

TEST_F(Simt, RunsEveryThreadOfEveryBlockOnce) {
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    simt::shuffle_blocks(seed);
    simt::shuffle_threads(seed);
    std::vector<int> runs(7 * 96);
    simt::launch(7, 96, [&] { ++runs[blockIdx.x * 96 + threadIdx.x]; });
    EXPECT_EQ(runs, std::vector<int>(7 * 96, 1));
  }
}

TEST_F(Simt, ShufflesBlocksAndThreads) {
  const auto order = [] {
    std::vector<unsigned> seen;
    simt::launch(20, 1, [&] { seen.push_back(blockIdx.x); });
    simt::launch(1, 64, [&] { seen.push_back(threadIdx.x); });
    return seen;
  };
  const std::vector<unsigned> rising = order();
  simt::shuffle_blocks(1);
  const std::vector<unsigned> blocks = order();
  simt::shuffle_blocks(0);
  simt::shuffle_threads(1);
  const std::vector<unsigned> threads = order();
  EXPECT_NE(rising, blocks);
  EXPECT_NE(rising, threads);
  EXPECT_TRUE(std::equal(rising.begin(), rising.begin() + 20, threads.begin()));
  EXPECT_TRUE(std::equal(rising.begin() + 20, rising.end(), blocks.begin() + 20));
}

// Every thread reads what all others wrote before the barrier, and only that.
TEST_F(Simt, BarriersSeparate) {
  for (const std::uint64_t seed : {0U, 3U}) {
    simt::shuffle_threads(seed);
    int wrong = 0;
    std::array<int, 128> place{};
    simt::launch(1, 128, [&] {
      for (int round = 1; round <= 5; ++round) {
        place[threadIdx.x] = round;
        __syncthreads();
        for (const int seen : place) wrong += seen != round ? 1 : 0;
        __syncthreads();
      }
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST_F(Simt, BarriersCountVotesOfThreadsThatAreLeft) {
  std::array<int, 64> any{};
  std::array<int, 64> all{};
  simt::launch(1, 64, [&] {
    if (threadIdx.x >= 48) return;
    any[threadIdx.x] = __syncthreads_or(threadIdx.x == 47 ? 5 : 0) + 2 * __syncthreads_or(0);
    all[threadIdx.x] = __syncthreads_and(1) + 2 * __syncthreads_and(threadIdx.x != 3 ? 7 : 0);
  });
  for (std::size_t t = 0; t < 64; ++t) {
    EXPECT_EQ(any[t], t < 48 ? 1 : 0) << t;
    EXPECT_EQ(all[t], t < 48 ? 1 : 0) << t;
  }
}

TEST_F(Simt, Shuffles) {
  for (const std::uint64_t seed : {0U, 7U}) {
    simt::shuffle_threads(seed);
    simt::launch(1, 64, [&] {
      const int lane = static_cast<int>(threadIdx.x) % 32;
      const double mine = threadIdx.x + 0.5;
      const double base = threadIdx.x / 32 * 32 + 0.5;
      EXPECT_EQ(__shfl_sync(kAll, mine, 5), base + 5);
      EXPECT_EQ(__shfl_sync(kAll, mine, (lane + 9) % 32), base + (lane + 9) % 32);
      EXPECT_EQ(__shfl_sync(kAll, mine, 1, 4), base + lane / 4 * 4 + 1);
      EXPECT_EQ(__shfl_up_sync(kAll, mine, 3), base + (lane < 3 ? lane : lane - 3));
      EXPECT_EQ(__shfl_up_sync(kAll, mine, 3, 8), base + (lane % 8 < 3 ? lane : lane - 3));
      EXPECT_EQ(__shfl_down_sync(kAll, mine, 2), base + (lane >= 30 ? lane : lane + 2));
      EXPECT_EQ(__shfl_down_sync(kAll, mine, 2, 8), base + (lane % 8 >= 6 ? lane : lane + 2));
      EXPECT_EQ(__shfl_xor_sync(kAll, mine, 17), base + (lane ^ 17));
      EXPECT_EQ(__shfl_sync(kAll, static_cast<std::uint16_t>(lane), 31), 31);
    });
  }
}

TEST_F(Simt, BallotsOfPartsOfAWarp) {
  simt::launch(1, 64, [&] {
    const unsigned lane = threadIdx.x % 32;
    EXPECT_EQ(__ballot_sync(kAll, lane % 3 == 0), 0x49249249U);
    const unsigned half = lane < 16 ? 0xffffU : 0xffff0000U;
    EXPECT_EQ(__ballot_sync(half, lane % 16 == 2), half & 0x00040004U);
    EXPECT_EQ(__any_sync(half, lane == 20), lane < 16 ? 0 : 1);
    EXPECT_EQ(__all_sync(half, lane != 20), lane < 16 ? 1 : 0);
    EXPECT_EQ(__match_any_sync(kAll, lane % 4), 0x11111111U << (lane % 4));
    // Some lanes wait for all while others still have something to settle.
    if (lane < 16) {
      EXPECT_EQ(__ballot_sync(0xffffU, lane == 9), 0x200U);
    }
    __syncwarp();
    // Lanes that are left may do without the others.
    if (lane % 2 == 0) {
      EXPECT_EQ(__ballot_sync(0x55555555U, lane < 4), 5U);
    } else if (lane == 7) {
      return;
    }
    __syncthreads();
  });
}

TEST_F(Simt, ActiveLanesAreSomeOfTheCompany) {
  int wrong = 0;
  simt::launch(1, 32, [&] {
    if (threadIdx.x % 2 == 0) return;
    const unsigned active = __activemask();
    if ((active >> threadIdx.x & 1U) == 0 || (active & 0x55555555U) != 0) ++wrong;
    if ((__match_any_sync(active, 3) & ~active) != 0) ++wrong;
  });
  EXPECT_EQ(wrong, 0);
}

TEST_F(Simt, Atomics) {
  unsigned sum = 0;
  unsigned least = 1000;
  unsigned most = 0;
  unsigned bits = 0;
  unsigned kept = ~0U;
  int swapped = -1;
  simt::launch(3, 32, [&] {
    atomicAdd(&sum, 1U + threadIdx.x);
    atomicMin(&least, 7U + threadIdx.x);
    atomicMax(&most, threadIdx.x);
    atomicOr(&bits, 1U << threadIdx.x);
    atomicAnd(&kept, ~(1U << (threadIdx.x / 2)));
    if (blockIdx.x == 2 && threadIdx.x == 31) {
      EXPECT_EQ(atomicExch(&swapped, 4), -1);
    }
  });
  EXPECT_EQ(sum, 3U * 528U);
  EXPECT_EQ(least, 7U);
  EXPECT_EQ(most, 31U);
  EXPECT_EQ(bits, kAll);
  EXPECT_EQ(kept, 0xffff0000U);
  EXPECT_EQ(swapped, 4);
}

TEST_F(Simt, Conversions) {
  const auto inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(__double2float_rd(1.0 + 0x1p-24), 1.0F);
  EXPECT_EQ(__double2float_ru(1.0 + 0x1p-24), 1.0F + 0x1p-23F);
  EXPECT_EQ(__double2float_rd(-1.0 - 0x1p-30), -1.0F - 0x1p-23F);
  EXPECT_EQ(__double2float_ru(-1.0 - 0x1p-30), -1.0F);
  EXPECT_EQ(__double2float_rd(1e300), std::numeric_limits<float>::max());
  EXPECT_EQ(__double2float_ru(1e300), inf);
  EXPECT_EQ(__double2float_ru(1e-300), 0x1p-149F);
  EXPECT_EQ(__hiloint2double(__double2hiint(-0.1), __double2loint(-0.1)), -0.1);
  EXPECT_EQ(__vsetne4(0x00ff0100U, 0U), 0x00010100U);
  EXPECT_EQ(__clz(0), 32);
  EXPECT_EQ(__clz(1), 31);
  EXPECT_EQ(__ffs(0), 0);
  EXPECT_EQ(__ffs(8), 4);
}

TEST_F(Simt, PoisonsMemoryBeforeEveryBlock) {
  static std::array<unsigned char, 8> memory;
  simt::poison_for_blocks(memory.data(), memory.size());
  int wrong = 0;
  simt::launch(2, 1, [&] {
    wrong += memory[3] != 0xa5 ? 1 : 0;
    memory[3] = 0;
  });
  EXPECT_EQ(wrong, 0);
}

// Sums over teams of every size.
template <int Size>
void check_team() {
  using isofold::cuda::Team;
  std::array<int, 256> x{};
  for (int i = 0; i < 256; ++i) x[static_cast<std::size_t>(i)] = i * i % 101 - 50;
  isofold::cuda::TeamScratch scratch;
  simt::launch(1, 256, [&] {
    const Team<Size> team{&scratch};
    const int begin = static_cast<int>(threadIdx.x) / Size * Size;
    int before = 0;
    int all = 0;
    unsigned long long most = 0;
    for (int i = begin; i < begin + Size; ++i) {
      const int value = x[static_cast<std::size_t>(i)];
      if (i < static_cast<int>(threadIdx.x)) before += value;
      all += value;
      most = std::max(most, static_cast<unsigned long long>(value + 50));
    }
    const int mine = x[threadIdx.x];
    const auto whole = team.scan(mine);
    EXPECT_EQ(whole.before, before);
    EXPECT_EQ(whole.all, all);
    const auto real = team.scan(0.25 * mine);
    EXPECT_EQ(real.before, 0.25 * before);
    EXPECT_EQ(real.all, 0.25 * all);
    EXPECT_EQ(team.reduce_sum(mine), all);
    EXPECT_EQ(team.reduce(static_cast<unsigned long long>(mine + 50),
                          [](unsigned long long a, unsigned long long b) { return std::max(a, b); }),
              most);
  });
}
TEST_F(Simt, Teams) {
  for (const std::uint64_t seed : {0U, 5U}) {
    simt::shuffle_threads(seed);
    check_team<1>();
    check_team<4>();
    check_team<32>();
    check_team<256>();
  }
}

using SimtDeathTest = Simt;

TEST_F(SimtDeathTest, ReportsThreadsThatWaitForEver) {
  EXPECT_DEATH(simt::launch(2, 64,
                            [] {
                              if (blockIdx.x == 1 && threadIdx.x % 32 == 3) return;
                              __syncwarp();
                            }),
               "threads wait for each other for ever \\(block 1");
  EXPECT_DEATH(simt::launch(1, 64,
                            [] {
                              if (threadIdx.x < 32) {
                                __syncthreads();
                              } else {
                                __ballot_sync(threadIdx.x == 40 ? 0x1ffU : 0xffffffffU, 1);
                              }
                            }),
               "threads wait for each other for ever");
}

TEST_F(SimtDeathTest, ReportsMasksWithoutTheirLane) {
  EXPECT_DEATH(simt::launch(1, 32, [] { __syncwarp(0xffffU); }), "its own mask leaves out");
}

}  // namespace
}  // namespace isofold_test
