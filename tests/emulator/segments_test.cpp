// The kernels of segment reductions and of conjugate gradients against the CPU executor, bit by bit: the
// checks of the GPU tester, and the order of threads and blocks.
#include <gtest/gtest.h>

#include <cstdint>

#include "cuda/cg_checks.hpp"
#include "cuda/segment_checks.hpp"
#include "emulator/fit_on_both.hpp"
#include "emulator/simt.hpp"

namespace isofold_test {
namespace {

class SegmentKernels : public OnDevice, public testing::WithParamInterface<std::uint64_t> {
 protected:
  void SetUp() override {
    simt::shuffle_blocks(GetParam() % 3);
    simt::shuffle_threads(GetParam() % 4);
  }
};

TEST_P(SegmentKernels, OfRandomBatches) { EXPECT_EQ(check_segment_batches({10}, 100 + GetParam()), 0); }
TEST_P(SegmentKernels, OfLongSegments) { EXPECT_EQ(check_long_segments(40000, GetParam()), 0); }
TEST_P(SegmentKernels, OfSegmentsAnywhere) { EXPECT_EQ(check_segment_places(), 0); }
TEST_P(SegmentKernels, OfBadOffsets) { EXPECT_EQ(check_bad_segment_offsets(), 0); }

TEST_P(SegmentKernels, OfConjugateGradients) { EXPECT_EQ(check_conjugate_gradients(150, GetParam()), 0); }

INSTANTIATE_TEST_SUITE_P(Seeds, SegmentKernels, testing::Range<std::uint64_t>(0, 4));

// Over more chunks than one warp adds up.
TEST(SegmentKernelsOnce, OfAVeryLongSegment) { EXPECT_EQ(check_long_segments(3000000, 9), 0); }

}  // namespace
}  // namespace isofold_test
