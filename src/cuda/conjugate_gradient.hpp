// The parts of conjugate gradients on a device: each enqueues one kernel on the executor's stream.
// api/conjugate_gradient.cpp puts them together.
#pragma once

#include <cstdint>

#include "algorithm/cg_state.hpp"
#include "isofold/executor.hpp"
#include "isofold/linear_maps.hpp"
#include "isofold/status.hpp"

namespace isofold::cuda {

// There is no cg_after_operator: the two passes around it do its part, which spares a launch.
[[nodiscard]] Status cg_start(const CgState& state, const Executor& executor);
[[nodiscard]] Status cg_after_residual(const CgState& state, bool last_step, const Executor& executor);
[[nodiscard]] Status cg_move(const CgState& state, const Executor& executor);
[[nodiscard]] Status cg_direct(const CgState& state, const Executor& executor);

// Waits for the stream and says how many systems are not done.
[[nodiscard]] Status cg_active(const CgState& state, const Executor& executor, std::int64_t* active);

[[nodiscard]] Status apply(const CompressedRows& matrix, DataType type, const void* x, void* y,
                           const Executor& executor);
[[nodiscard]] Status apply(const Banded& matrix, DataType type, const void* x, void* y,
                           const Executor& executor);
[[nodiscard]] Status apply(const BlockDiagonal& matrix, DataType type, const void* x, void* y,
                           const Executor& executor);
// y += factor x.
[[nodiscard]] Status add_scaled(DataType type, double factor, const void* x, void* y, std::int64_t count,
                                const Executor& executor);

// Calls use(memory) with device memory: the caller's, or some allocated in stream order.
[[nodiscard]] Status with_device_scratch(const Executor& executor, std::int64_t bytes,
                                         const std::function<Status(void*)>& use);

}  // namespace isofold::cuda
