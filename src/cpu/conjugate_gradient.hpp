// The parts of conjugate gradients on the CPU; api/conjugate_gradient.cpp puts them together.
#pragma once

#include <cstdint>

#include "algorithm/cg_state.hpp"
#include "algorithm/outcome.hpp"
#include "isofold/executor.hpp"
#include "isofold/linear_maps.hpp"

namespace isofold::cpu {

void cg_start(const CgState& state);
void cg_after_operator(const CgState& state);
void cg_after_residual(const CgState& state, bool last_step);
Outcome cg_move(const CgState& state, const Executor& executor);
Outcome cg_direct(const CgState& state, const Executor& executor);

Outcome apply(const CompressedRows& matrix, DataType type, const void* x, void* y, const Executor& executor);
Outcome apply(const Banded& matrix, DataType type, const void* x, void* y, const Executor& executor);
Outcome apply(const BlockDiagonal& matrix, DataType type, const void* x, void* y, const Executor& executor);
// y += factor x.
Outcome add_scaled(DataType type, double factor, const void* x, void* y, std::int64_t count,
                   const Executor& executor);

}  // namespace isofold::cpu
