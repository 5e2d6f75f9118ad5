#include "isofold/isotonic.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "arrays.hpp"
#include "bindings.hpp"
#include "call.hpp"
#include "rows.hpp"

namespace isofold::python {
namespace {

IsotonicProblem make_problem(const Input& values, const std::optional<Input>& weights,
                             const std::optional<Offsets>& offsets, std::optional<std::int64_t> row_length,
                             bool increasing, double lower, double upper) {
  const auto total = static_cast<std::int64_t>(values.size());
  IsotonicProblem problem;
  problem.values = view(values, "values");
  problem.weights = view(weights, "weights");
  if (weights) check_size(weights->size(), total, "weights");
  problem.rows = make_rows(total, offsets, row_length);
  problem.increasing = increasing;
  problem.lower_bound = lower;
  problem.upper_bound = upper;
  return problem;
}

void set_ties(IsotonicProblem& problem, const std::optional<Offsets>& tie_offsets) {
  if (!tie_offsets) return;
  const std::size_t size = tie_offsets->size();
  if (size == 0 || tie_offsets->data()[0] != 0 || tie_offsets->data()[size - 1] != problem.rows.total()) {
    throw nb::value_error("tie_offsets must rise from 0 to the number of values");
  }
  problem.tie_offsets = tie_offsets->data();
  problem.tie_groups = static_cast<std::int64_t>(size) - 1;
}

// Flags that fit wrote: as many as values, and every row starts a block. Outputs are sized by them.
void check_flags(const IsotonicProblem& problem, const Flags& block_starts) {
  check_size(block_starts.size(), problem.rows.total(), "block_starts");
  for (std::int64_t row = 0; row < problem.rows.count; ++row) {
    const std::int64_t begin = problem.rows.begin(row);
    if (begin < 0 || begin > problem.rows.end(row) || problem.rows.end(row) > problem.rows.total()) {
      throw nb::value_error("offsets must rise from 0 to the number of values");
    }
    if (begin < problem.rows.end(row) && block_starts.data()[begin] == 0) {
      throw nb::value_error("block_starts must be set at the start of every row");
    }
  }
}

std::tuple<nb::object, nb::object> fit(const Input& values, const std::optional<Input>& weights,
                                       const std::optional<Offsets>& offsets,
                                       std::optional<std::int64_t> row_length, bool increasing, double lower,
                                       double upper, const std::optional<Offsets>& tie_offsets,
                                       const std::optional<std::string>& out_dtype, int threads,
                                       std::int64_t chunk_size, const std::string& backend) {
  IsotonicProblem problem = make_problem(values, weights, offsets, row_length, increasing, lower, upper);
  set_ties(problem, tie_offsets);
  const auto total = static_cast<std::int64_t>(values.size());
  const DataType out_type = out_dtype ? parse_data_type(*out_dtype) : problem.values.type;
  const Output fitted = make_output(out_type, total);
  const Output starts = make_flags(total);
  SignalPoll poll;
  const Executor executor = make_executor(threads, chunk_size, backend, poll);
  call_without_gil([&] {
    return isotonic_regression(
        problem, IsotonicFit{MutableArray{fitted.data, out_type}, static_cast<std::uint8_t*>(starts.data)},
        executor);
  });
  return {fitted.array, starts.array};
}

std::tuple<nb::object, nb::object> gradient(const Input& values, const std::optional<Input>& weights,
                                            const std::optional<Offsets>& offsets,
                                            std::optional<std::int64_t> row_length, bool increasing,
                                            double lower, double upper, const Flags& block_starts,
                                            const Input& fit_gradient, bool want_weights,
                                            const std::optional<std::string>& out_dtype, int threads,
                                            const std::string& backend) {
  const IsotonicProblem problem =
      make_problem(values, weights, offsets, row_length, increasing, lower, upper);
  check_flags(problem, block_starts);
  const auto total = static_cast<std::int64_t>(values.size());
  check_size(fit_gradient.size(), total, "gradient");
  const ConstArray gradient_view = view(fit_gradient, "gradient");
  const DataType out_type = out_dtype ? parse_data_type(*out_dtype) : problem.values.type;
  const Output for_values = make_output(out_type, total);
  IsotonicGradient out{MutableArray{for_values.data, out_type}, MutableArray{}};
  nb::object for_weights = nb::none();
  if (want_weights) {
    const DataType weight_type = problem.weights.present() ? problem.weights.type : out_type;
    const Output output = make_output(weight_type, total);
    out.weights = MutableArray{output.data, weight_type};
    for_weights = output.array;
  }
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, backend, poll);
  call_without_gil(
      [&] { return isotonic_gradient(problem, block_starts.data(), gradient_view, out, executor); });
  return {for_values.array, for_weights};
}

nb::object weights_of_blocks(const Input& values, const std::optional<Input>& weights,
                             const std::optional<Offsets>& offsets, std::optional<std::int64_t> row_length,
                             const Flags& block_starts, int threads) {
  const IsotonicProblem problem =
      make_problem(values, weights, offsets, row_length, true, -std::numeric_limits<double>::infinity(),
                   std::numeric_limits<double>::infinity());
  check_flags(problem, block_starts);
  const std::uint8_t* flags = block_starts.data();
  const auto blocks = static_cast<std::int64_t>(
      std::count_if(flags, flags + block_starts.size(), [](std::uint8_t flag) { return flag != 0; }));
  const Output out = make_output(DataType::float64, blocks);
  SignalPoll poll;
  const Executor executor = make_executor(threads, 0, "cpu", poll);
  call_without_gil([&] { return block_weights(problem, flags, static_cast<double*>(out.data), executor); });
  return out.array;
}

// Where the blocks start, and after the last of them the number of elements.
nb::object block_bounds(const Flags& block_starts) {
  const std::uint8_t* flags = block_starts.data();
  const auto total = static_cast<std::int64_t>(block_starts.size());
  std::int64_t blocks = 0;
  for (std::int64_t i = 0; i < total; ++i) blocks += flags[i] != 0 ? 1 : 0;
  const Output out = make_integers(blocks + 1);
  auto* bounds = static_cast<std::int64_t*>(out.data);
  std::int64_t next = 0;
  std::int64_t i = 0;
  // Eight flags at a time: dense rows and sparse ones are mostly all set or all clear.
  for (; i + 8 <= total; i += 8) {
    std::uint64_t eight;
    std::memcpy(&eight, flags + i, sizeof eight);
    if (eight == 0) continue;
    if (eight == 0x0101010101010101ULL) {
      for (int k = 0; k < 8; ++k) bounds[next + k] = i + k;
      next += 8;
      continue;
    }
    for (int k = 0; k < 8; ++k) {
      if (flags[i + k] != 0) bounds[next++] = i + k;
    }
  }
  for (; i < total; ++i) {
    if (flags[i] != 0) bounds[next++] = i;
  }
  bounds[next] = total;
  return out.array;
}

// The length of every block, from its bounds.
nb::object block_lengths(const Offsets& bounds) {
  const auto blocks = static_cast<std::int64_t>(bounds.size()) - 1;
  const Output out = make_output(DataType::float64, blocks);
  auto* lengths = static_cast<double*>(out.data);
  for (std::int64_t b = 0; b < blocks; ++b) {
    lengths[b] = static_cast<double>(bounds.data()[b + 1] - bounds.data()[b]);
  }
  return out.array;
}

}  // namespace

void bind_isotonic(nb::module_& module) {
  using namespace nb::literals;
  module.def("block_bounds", &block_bounds, "block_starts"_a.noconvert(),
             "Where the flags are set, and after that their number, as int64.");
  module.def("block_lengths", &block_lengths, "bounds"_a.noconvert(),
             "The differences of the bounds, as float64.");
  module.def(
      "fit", &fit, "values"_a.noconvert(), "weights"_a.noconvert().none(), "offsets"_a.noconvert().none(),
      "row_length"_a.none(), "increasing"_a, "lower"_a, "upper"_a, "tie_offsets"_a.noconvert().none(),
      "out_dtype"_a.none(), "threads"_a, "chunk_size"_a = 0, "backend"_a = "cpu",
      "(fit, flags that are 1 where a maximal block starts) of every row, in the values' type or out_dtype.");
  module.def("gradient", &gradient, "values"_a.noconvert(), "weights"_a.noconvert().none(),
             "offsets"_a.noconvert().none(), "row_length"_a.none(), "increasing"_a, "lower"_a, "upper"_a,
             "block_starts"_a.noconvert(), "gradient"_a.noconvert(), "want_weights"_a, "out_dtype"_a.none(),
             "threads"_a, "backend"_a = "cpu",
             "(gradient in the values, gradient in the weights or None); the latter in the weights' type.");
  module.def("block_weights", &weights_of_blocks, "values"_a.noconvert(), "weights"_a.noconvert().none(),
             "offsets"_a.noconvert().none(), "row_length"_a.none(), "block_starts"_a.noconvert(), "threads"_a,
             "The weight of every block, the exact sum rounded once to float64.");
}

}  // namespace isofold::python
