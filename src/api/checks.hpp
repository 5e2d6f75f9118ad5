// What is wrong with a call's arguments, in words that name the argument and the place.
#pragma once

#include "isofold/executor.hpp"
#include "isofold/interpolation.hpp"
#include "isofold/isotonic.hpp"
#include "isofold/rows.hpp"
#include "isofold/status.hpp"

namespace isofold::api {

[[nodiscard]] Status fault(StatusCode code, std::string message, std::int64_t row = -1,
                           std::int64_t position = -1);

// How many rows there are, how long, and offsets that rise from 0.
[[nodiscard]] Status check_rows(const Rows& rows);
// The same for Backend::cuda, whose offsets the host cannot read.
[[nodiscard]] Status check_device_rows(const Rows& rows);

// Sizes, pointers, offsets, bounds: everything but the values and weights themselves.
[[nodiscard]] Status check_problem(const IsotonicProblem& problem);
// The same for Backend::cuda, whose arrays and offsets the host cannot read.
[[nodiscard]] Status check_device_problem(const IsotonicProblem& problem);
[[nodiscard]] Status check_executor(const Executor& executor);
[[nodiscard]] Status check_block_starts(const IsotonicProblem& problem, const std::uint8_t* block_starts);
[[nodiscard]] Status check_curves(const Curves& curves);

// The first value that is not finite or weight that is not finite and positive, in the order of the elements;
// ok when there is none. O(n), and run only where an executor met one, or where ties are to be ordered.
[[nodiscard]] Status check_elements(const IsotonicProblem& problem);

}  // namespace isofold::api
