#include "cpu/lane_rows.hpp"

#include <cmath>

#include "cpu/flag_bytes.hpp"
#include "cpu/instruction_set.hpp"
#include "cpu/streaming.hpp"
#include "cpu/survey.hpp"
#include "cpu/vector_lanes.hpp"

namespace isofold::cpu {
namespace {

// A multiple of every number of elements that a block can have.
constexpr double kScale = 720720.0;

using Kernel = std::uint32_t(const double*, int, bool, double, double*, std::uint32_t*);
using MeansKernel = std::uint32_t(const double*, const LaneBlocks&, double, double*);
struct LaneKernels {
  Kernel* fit[2][2];  // [to floats][sums are exact]
  MeansKernel* means[2][2];
};

#define ISOFOLD_KERNELS "cpu/lane_rows_kernels.hpp"
#include "cpu/kernels_by_instruction_set.hpp"

}  // namespace

std::uint32_t LaneRows::fit(const double* values, int length, Format format, double* fits,
                            std::uint8_t* starts) {
  const Statistics facts = statistics(values, kLanes * std::int64_t{length});
  if (!facts.finite || !(facts.magnitude < 0x1p900)) return (1U << kLanes) - 1;
  Survey survey;
  survey.magnitude = facts.magnitude;
  survey.value_unit = facts.unit;
  survey.weight_unit.see(1.0);
  const bool exact = exact_as_double(2 * kScale * facts.magnitude, survey.unit());
  std::uint32_t masks[kLanes];
  // Sixteen additions of what additions lose, and the difference of two such sums.
  const double error = survey.total_error(64.0);
  Kernel* kernel = kernels().fit[format.precision == 53 ? 0 : 1][error == 0.0 ? 1 : 0];
  const std::uint32_t failed = kernel(values, length, exact, error, fits, masks);
  // A row's spare places are overwritten by the next row.
  for (int row = 0; row < kLanes; ++row) {
    for (int k = 0; k < length; k += 8) write_flag_bytes(masks[row] >> k, starts + row * length + k);
  }
  return failed;
}

std::uint32_t lane_means(const double* values, const LaneBlocks& blocks, Format format, double pair_error,
                         double* means) {
  const auto& by_exactness = kernels().means[format.precision == 53 ? 0 : 1];
  return by_exactness[pair_error == 0.0 ? 1 : 0](values, blocks, pair_error, means);
}

}  // namespace isofold::cpu
