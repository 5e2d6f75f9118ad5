// The passes of conjugate gradients over vectors and systems, and the linear maps, over threads.
#include "cpu/conjugate_gradient.hpp"

#include <algorithm>

#include "algorithm/linear_rows.hpp"
#include "cpu/parallel.hpp"

namespace isofold::cpu {
namespace {

// Fewer elements are done sooner than a thread has started.
constexpr std::int64_t kPiece = 1 << 16;

// The first row that ends after the element; behind all that are empty there.
std::int64_t row_of(const Rows& rows, std::int64_t element) {
  if (rows.offsets == nullptr) return element / rows.length;
  const std::int64_t* ends = rows.offsets + 1;
  return std::upper_bound(ends, ends + rows.count, element) - ends;
}

// Calls visit(row, first, last) for the runs of elements of one row, over threads.
template <class Visit>
bool for_runs(const Rows& rows, const Executor& executor, Visit&& visit) {
  return parallel_for(executor, thread_count(executor), rows.total(), kPiece,
                      [&](int, std::int64_t begin, std::int64_t end) {
                        std::int64_t row = row_of(rows, begin);
                        for (std::int64_t first = begin; first < end; ++row) {
                          const std::int64_t last = std::min(rows.end(row), end);
                          if (first < last) visit(row, first, last);
                          first = std::max(first, last);
                        }
                      });
}

// Calls use(T{}) with the vectors' type.
template <class Use>
auto with_type(DataType type, Use&& use) {
  return type == DataType::float32 ? use(0.0F) : use(0.0);
}

Outcome outcome(bool finished) { return finished ? Outcome::done : Outcome::interrupted; }

// y[i] = row(values of their type, x of its, i) over threads; rows of `rows` know their system.
template <class Row>
Outcome map_rows(const Rows& rows, ConstArray values, DataType type, const void* x, void* y,
                 const Executor& executor, Row&& row) {
  return with_type(type, [&](auto vector_zero) {
    return with_type(values.type, [&](auto value_zero) {
      using T = decltype(vector_zero);
      using V = decltype(value_zero);
      const auto* from = static_cast<const T*>(x);
      auto* to = static_cast<T*>(y);
      const auto* coefficients = static_cast<const V*>(values.data);
      return outcome(
          for_runs(rows, executor, [&](std::int64_t system, std::int64_t first, std::int64_t last) {
            for (std::int64_t i = first; i < last; ++i) {
              to[i] = static_cast<T>(row(coefficients, from, i, system));
            }
          }));
    });
  });
}

}  // namespace

void cg_start(const CgState& state) {
  for (std::int64_t s = 0; s < state.systems.count; ++s) {
    start_system(state.terms(s), s, state.system[s], state.out);
  }
}

void cg_after_operator(const CgState& state) {
  for (std::int64_t s = 0; s < state.systems.count; ++s) after_operator(state.curvature[s], state.system[s]);
}

void cg_after_residual(const CgState& state, bool last_step) {
  *state.active = 0;
  for (std::int64_t s = 0; s < state.systems.count; ++s) {
    after_residual(state.norm[s], state.inner[s], s, state.replace_every, last_step, state.system[s],
                   state.out);
    if (state.system[s].phase != CgPhase::done) ++*state.active;
  }
}

Outcome cg_move(const CgState& state, const Executor& executor) {
  return with_type(state.type, [&](auto zero) {
    const CgElements<decltype(zero)> elements(state);
    return outcome(
        for_runs(state.systems, executor, [&](std::int64_t s, std::int64_t first, std::int64_t last) {
          const CgSystem& system = state.system[s];
          for (std::int64_t i = first; i < last; ++i) elements.move(system, i);
        }));
  });
}

Outcome cg_direct(const CgState& state, const Executor& executor) {
  return with_type(state.type, [&](auto zero) {
    const CgElements<decltype(zero)> elements(state);
    return outcome(
        for_runs(state.systems, executor, [&](std::int64_t s, std::int64_t first, std::int64_t last) {
          const CgSystem& system = state.system[s];
          for (std::int64_t i = first; i < last; ++i) elements.direct(system, i);
        }));
  });
}

Outcome apply(const CompressedRows& matrix, DataType type, const void* x, void* y, const Executor& executor) {
  return map_rows(Rows::single(matrix.rows), matrix.values, type, x, y, executor,
                  [&]<class T, class V>(const V*, const T* from, std::int64_t i, std::int64_t) {
                    return compressed_row<T, V>(matrix, from, i);
                  });
}

Outcome apply(const Banded& matrix, DataType type, const void* x, void* y, const Executor& executor) {
  return map_rows(matrix.systems, matrix.values, type, x, y, executor,
                  [&](const auto* values, const auto* from, std::int64_t i, std::int64_t s) {
                    return banded_row(values, matrix.systems.total(), matrix.width, from, i,
                                      matrix.systems.begin(s), matrix.systems.end(s));
                  });
}

Outcome apply(const BlockDiagonal& matrix, DataType type, const void* x, void* y, const Executor& executor) {
  return map_rows(Rows::single(matrix.rows), matrix.values, type, x, y, executor,
                  [&](const auto* values, const auto* from, std::int64_t i, std::int64_t) {
                    return block_row(values, matrix.size, from, i);
                  });
}

Outcome add_scaled(DataType type, double factor, const void* x, void* y, std::int64_t count,
                   const Executor& executor) {
  return with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const auto* from = static_cast<const T*>(x);
    auto* to = static_cast<T*>(y);
    return outcome(parallel_for(
        executor, thread_count(executor), count, kPiece, [&](int, std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            to[i] = static_cast<T>(static_cast<double>(to[i]) + factor * static_cast<double>(from[i]));
          }
        }));
  });
}

}  // namespace isofold::cpu
