#include "api/checks.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "algorithm/row_view.hpp"

namespace isofold::api {
namespace {

std::string place(const IsotonicProblem& problem, std::int64_t row, std::int64_t position) {
  const std::string at = "position " + std::to_string(position);
  return problem.rows.count == 1 && problem.rows.offsets == nullptr
             ? at
             : "row " + std::to_string(row) + ", " + at;
}

std::string printed(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

Status check_ties(const IsotonicProblem& problem) {
  if (problem.tie_offsets == nullptr) return {};
  const std::int64_t* offsets = problem.tie_offsets;
  const std::int64_t groups = problem.tie_groups;
  const std::int64_t total = problem.rows.total();
  if (groups < 0) return fault(StatusCode::bad_offsets, "tie_offsets: the number of groups is negative");
  if (offsets[0] != 0) return fault(StatusCode::bad_offsets, "tie_offsets must start at 0", -1, 0);
  for (std::int64_t g = 0; g < groups; ++g) {
    if (offsets[g + 1] <= offsets[g]) {
      return fault(StatusCode::bad_offsets, "tie_offsets must rise: position " + std::to_string(g + 1), -1,
                   g + 1);
    }
  }
  if (offsets[groups] != total) {
    return fault(StatusCode::bad_offsets,
                 "tie_offsets must end at the number of elements, " + std::to_string(total) + ": position " +
                     std::to_string(groups) + " is " + std::to_string(offsets[groups]),
                 -1, groups);
  }
  for (std::int64_t r = 1; r < problem.rows.count; ++r) {
    if (!std::binary_search(offsets, offsets + groups + 1, problem.rows.begin(r))) {
      return fault(StatusCode::bad_offsets,
                   "tie_offsets: a group crosses the start of row " + std::to_string(r), r, 0);
    }
  }
  return {};
}

}  // namespace

Status fault(StatusCode code, std::string message, std::int64_t row, std::int64_t position) {
  return {code, std::move(message), row, position};
}

Status check_rows(const Rows& rows) {
  if (rows.count < 0) {
    return fault(StatusCode::invalid_argument,
                 "rows: the number of rows is negative: " + std::to_string(rows.count));
  }
  if (rows.offsets == nullptr) {
    if (rows.length < 0) {
      return fault(StatusCode::invalid_argument,
                   "rows: the row length is negative: " + std::to_string(rows.length));
    }
    if (rows.length > 0 && rows.count > (std::int64_t{1} << 46) / rows.length) {
      return fault(StatusCode::invalid_argument, "rows: more than 2^46 elements");
    }
    return {};
  }
  if (rows.offsets[0] != 0) {
    return fault(StatusCode::bad_offsets,
                 "offsets must start at 0: position 0 is " + std::to_string(rows.offsets[0]), -1, 0);
  }
  for (std::int64_t r = 0; r < rows.count; ++r) {
    if (rows.offsets[r + 1] < rows.offsets[r]) {
      return fault(StatusCode::bad_offsets,
                   "offsets must not fall: position " + std::to_string(r + 1) + " is " +
                       std::to_string(rows.offsets[r + 1]) + " after " + std::to_string(rows.offsets[r]),
                   -1, r + 1);
    }
  }
  return {};
}

Status check_device_rows(const Rows& rows) {
  if (rows.offsets == nullptr || rows.count < 0) return check_rows({rows.count, rows.length, nullptr, -1});
  if (rows.elements < 0) {
    return fault(StatusCode::invalid_argument,
                 "rows: offsets in device memory need the number of elements beside them");
  }
  if (rows.count == 0 && rows.elements > 0) {
    return fault(StatusCode::bad_offsets,
                 "offsets: no row, but " + std::to_string(rows.elements) + " elements");
  }
  return {};
}

Status check_problem(const IsotonicProblem& problem) {
  if (Status status = check_rows(problem.rows); !status.ok()) return status;
  if (!problem.values.present()) return fault(StatusCode::invalid_argument, "values: no array given");
  const std::int64_t total = problem.rows.total();
  if (total > 0 && problem.values.data == nullptr) {
    return fault(StatusCode::invalid_argument, "values: null pointer");
  }
  if (total > 0 && problem.weights.present() && problem.weights.data == nullptr) {
    return fault(StatusCode::invalid_argument, "weights: null pointer");
  }
  if (!(problem.lower_bound <= problem.upper_bound)) {
    return fault(StatusCode::invalid_argument,
                 "lower_bound must not exceed upper_bound: " + printed(problem.lower_bound) + " > " +
                     printed(problem.upper_bound));
  }
  return check_ties(problem);
}

Status check_executor(const Executor& executor) {
  if (executor.threads < 0) {
    return fault(StatusCode::invalid_argument,
                 "threads must not be negative: " + std::to_string(executor.threads));
  }
  const std::int64_t chunk = executor.chunk_size;
  if (chunk != 0 && (chunk < 32 || chunk > 65536 || (chunk & (chunk - 1)) != 0)) {
    return fault(StatusCode::invalid_argument,
                 "chunk_size must be a power of two from 32 to 65536, or 0: " + std::to_string(chunk));
  }
  return {};
}

Status check_device_problem(const IsotonicProblem& problem) {
  IsotonicProblem judged = problem;
  if (Status status = check_device_rows(problem.rows); !status.ok()) return status;
  if (problem.rows.offsets != nullptr) judged.rows = Rows::single(problem.rows.elements);
  judged.tie_offsets = nullptr;
  if (Status status = check_problem(judged); !status.ok()) return status;
  const std::int64_t total = problem.rows.total();
  if (problem.tie_offsets != nullptr &&
      (problem.tie_groups < (total > 0 ? 1 : 0) || problem.tie_groups > total)) {
    return fault(StatusCode::bad_offsets, "tie_offsets: " + std::to_string(problem.tie_groups) +
                                              " groups cannot cut " + std::to_string(total) + " elements");
  }
  return {};
}

Status check_block_starts(const IsotonicProblem& problem, const std::uint8_t* block_starts) {
  if (problem.rows.total() > 0 && block_starts == nullptr) {
    return fault(StatusCode::invalid_argument, "block_starts: null pointer");
  }
  for (std::int64_t r = 0; r < problem.rows.count; ++r) {
    if (problem.rows.begin(r) < problem.rows.end(r) && block_starts[problem.rows.begin(r)] == 0) {
      return fault(StatusCode::invalid_argument,
                   "block_starts: row " + std::to_string(r) + " does not start a block", r, 0);
    }
  }
  return {};
}

Status check_curves(const Curves& curves) {
  if (curves.count < 1) return fault(StatusCode::invalid_argument, "curves: at least one is needed");
  if (curves.x == nullptr || curves.y == nullptr || curves.offsets == nullptr) {
    return fault(StatusCode::invalid_argument, "knots: null pointer");
  }
  if (curves.offsets[0] != 0) return fault(StatusCode::bad_offsets, "curve offsets must start at 0", -1, 0);
  // All offsets before any knot: one that is too large would lead past the arrays.
  for (std::int64_t c = 0; c < curves.count; ++c) {
    if (curves.offsets[c] < curves.offsets[c + 1]) continue;
    if (curves.count == 1) return fault(StatusCode::invalid_argument, "knots: at least one is needed");
    return fault(StatusCode::bad_offsets, "knots: curve " + std::to_string(c) + ", at least one is needed", c,
                 c + 1);
  }
  for (std::int64_t c = 0; c < curves.count; ++c) {
    const std::int64_t begin = curves.offsets[c];
    const std::int64_t end = curves.offsets[c + 1];
    // Places are named within a curve where there are several.
    const std::int64_t curve = curves.count > 1 ? c : -1;
    const std::string in_curve = curves.count > 1 ? "curve " + std::to_string(c) + ", " : "";
    const auto at = [&](std::int64_t i) { return in_curve + "position " + std::to_string(i - begin); };
    for (std::int64_t i = begin; i < end; ++i) {
      for (const bool is_x : {true, false}) {
        const double value = is_x ? curves.x[i] : curves.y[i];
        if (std::isfinite(value)) continue;
        return fault(
            StatusCode::not_finite,
            std::string(is_x ? "knots.x" : "knots.y") + " must be finite: " + at(i) + " is " + printed(value),
            curve, i - begin);
      }
      if (i > begin && !(curves.x[i - 1] < curves.x[i])) {
        return fault(StatusCode::invalid_argument, "knots.x must rise: " + at(i), curve, i - begin);
      }
    }
  }
  return {};
}

Status check_elements(const IsotonicProblem& problem) {
  constexpr std::int64_t kBuffer = 256;
  double values[kBuffer];
  double weights[kBuffer];
  for (std::int64_t r = 0; r < problem.rows.count; ++r) {
    const std::int64_t begin = problem.rows.begin(r);
    const std::int64_t end = problem.rows.end(r);
    for (std::int64_t first = begin; first < end; first += kBuffer) {
      const std::int64_t count = std::min(kBuffer, end - first);
      load(problem.values, first, count, values);
      if (problem.weights.present()) load(problem.weights, first, count, weights);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t position = first + i - begin;
        if (!std::isfinite(values[i])) {
          return fault(StatusCode::not_finite,
                       "values must be finite: " + place(problem, r, position) + " is " + printed(values[i]),
                       r, position);
        }
        if (!problem.weights.present() || (std::isfinite(weights[i]) && weights[i] > 0)) continue;
        const bool finite = std::isfinite(weights[i]);
        return fault(finite ? StatusCode::weight_not_positive : StatusCode::not_finite,
                     std::string(finite ? "weights must be positive: " : "weights must be finite: ") +
                         place(problem, r, position) + " is " + printed(weights[i]),
                     r, position);
      }
    }
  }
  return {};
}

}  // namespace isofold::api
