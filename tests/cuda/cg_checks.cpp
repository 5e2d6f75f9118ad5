#include "cuda/cg_checks.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device_array.hpp"
#include "support/linear_systems.hpp"

namespace isofold_test {
namespace {

using isofold::CgProblem;
using isofold::CgStatus;
using isofold::Rows;
using isofold::Status;

struct Options {
  bool compressed = false;
  bool jacobi = false;
  bool looks = false;  // check_every
  double rtol = 1e-6;
  std::int64_t replace_every = 0;
};

template <class T>
CgProblem problem_of(const LinearSystems<T>& systems, const Rows& rows, const T* b, const T* banded,
                     const T* inverse_diagonal, const std::int64_t* row_offsets, const std::int64_t* indices,
                     const T* values, const Options& options) {
  constexpr isofold::DataType kType = isofold::data_type_of<T>;
  CgProblem problem;
  problem.systems = rows;
  problem.right_side = b;
  problem.matrix = options.compressed ? linear_map(isofold::CompressedRows{systems.total(), systems.total(),
                                                                           row_offsets, indices, values},
                                                   kType)
                                      : linear_map(isofold::Banded{rows, systems.width, banded}, kType);
  if (options.jacobi) {
    problem.preconditioner = linear_map(isofold::BlockDiagonal{systems.total(), 1, inverse_diagonal}, kType);
  }
  problem.rtol_of_all = options.rtol;
  problem.replace_every = options.replace_every;
  return problem;
}

// NaNs of any kind are equal.
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && !(a[i] != a[i] && b[i] != b[i])) return false;
  }
  return a.size() == b.size();
}

template <class T>
int check(const std::string& name, const LinearSystems<T>& systems, const Options& options) {
  const auto n = static_cast<std::size_t>(systems.total());
  const auto count = static_cast<std::size_t>(systems.count());
  const std::vector<T> banded = systems.banded_values();
  const auto rows = systems.compressed();

  Solution<T> expected{std::vector<T>(n), std::vector<std::int64_t>(count), std::vector<CgStatus>(count),
                       std::vector<double>(count), std::vector<double>(count)};
  std::int64_t most = 0;
  {
    std::vector<T> work(4 * n);
    CgProblem problem = problem_of(systems, Rows::ragged(systems.offsets.data(), systems.count()),
                                   systems.b.data(), banded.data(), systems.inverse_diagonal.data(),
                                   rows.offsets.data(), rows.indices.data(), rows.values.data(), options);
    const Status status = isofold::conjugate_gradient(
        problem, {expected.x.data(), work.data(), work.data() + n, work.data() + 2 * n, work.data() + 3 * n},
        {expected.iterations.data(), expected.status.data(), expected.residual_norm.data(),
         expected.true_residual_norm.data()});
    if (!status.ok()) {
      std::printf("%s: the CPU executor says %s\n", name.c_str(), status.message.c_str());
      return 1;
    }
    for (std::size_t s = 0; s < count; ++s) {
      most = std::max(most, systems.offsets[s + 1] - systems.offsets[s]);
    }
  }

  const DeviceArray<T> b(systems.b);
  const DeviceArray<T> diagonals(banded);
  const DeviceArray<T> inverse(systems.inverse_diagonal);
  const DeviceArray<std::int64_t> offsets(systems.offsets);
  const DeviceArray<std::int64_t> row_offsets(rows.offsets);
  const DeviceArray<std::int64_t> indices(rows.indices);
  const DeviceArray<T> values(rows.values);
  const DeviceArray<T> x(std::vector<T>(n), 1);
  std::vector<std::unique_ptr<DeviceArray<T>>> work;
  for (int k = 0; k < 4; ++k) work.push_back(std::make_unique<DeviceArray<T>>(systems.total()));
  const DeviceArray<std::int64_t> iterations(systems.count());
  const DeviceArray<std::uint8_t> statuses(systems.count());
  const DeviceArray<double> residual(systems.count());
  const DeviceArray<double> true_residual(systems.count());
  const Rows cut = Rows::ragged_on_device(offsets.data(), systems.count(), systems.total());
  CgProblem problem =
      problem_of(systems, cut, static_cast<const T*>(b.data()), static_cast<const T*>(diagonals.data()),
                 static_cast<const T*>(inverse.data()), row_offsets.data(), indices.data(),
                 static_cast<const T*>(values.data()), options);
  problem.iteration_limit = most;
  problem.check_every = options.looks ? 5 : 0;
  isofold::Executor executor;
  executor.backend = isofold::Backend::cuda;
  const Status status = isofold::conjugate_gradient(
      problem, {x.data(), work[0]->data(), work[1]->data(), work[2]->data(), work[3]->data()},
      {iterations.data(), reinterpret_cast<CgStatus*>(statuses.data()), residual.data(),
       true_residual.data()},
      executor);
  if (!status.ok()) {
    std::printf("%s: the CUDA executor says %s\n", name.c_str(), status.message.c_str());
    return 1;
  }
  check_cuda(cudaDeviceSynchronize(), name.c_str());
  bool same = x.margins_intact() && iterations.margins_intact() && statuses.margins_intact() &&
              residual.margins_intact() && true_residual.margins_intact();
  for (const auto& vector : work) same = same && vector->margins_intact();
  if (!same) std::printf("%s: wrote outside its outputs\n", name.c_str());
  const std::vector<std::uint8_t> found = statuses.host();
  const bool agrees = equal(x.host(), expected.x) && iterations.host() == expected.iterations &&
                      std::memcmp(found.data(), expected.status.data(), found.size()) == 0 &&
                      equal(residual.host(), expected.residual_norm) &&
                      equal(true_residual.host(), expected.true_residual_norm);
  if (!agrees) std::printf("%s: not the CPU's solution\n", name.c_str());
  return same && agrees ? 0 : 1;
}

template <class T>
int check_all(std::int64_t longest, std::uint64_t seed, const char* type) {
  int failed = 0;
  Random random(seed);
  for (const std::int64_t width : {1, 4}) {
    LinearSystems<T> systems(width);
    for (const std::int64_t length : {1, 2, 0, 10, 33, 150, 0, 700, 5000, 111580}) {
      if (length > longest) continue;
      systems.append(random, length, random.chance(0.5) ? 1e-2 : 1e-5);
    }
    systems.append(random, 20, 0.1);
    systems.b.back() = static_cast<T>(NAN);
    systems.append(random, 20, 0.1);
    systems.diagonals[static_cast<std::size_t>(width)].back() = -1;
    for (const bool compressed : {false, true}) {
      for (const bool jacobi : {false, true}) {
        Options options{compressed, jacobi, jacobi, jacobi ? 1e-6 : 1e-4, compressed ? 9 : 0};
        failed += check(std::string("conjugate gradients, ") + type + ", width " + std::to_string(width) +
                            (compressed ? ", compressed" : ", banded") + (jacobi ? ", Jacobi" : ""),
                        systems, options);
      }
    }
  }
  return failed;
}

}  // namespace

int check_conjugate_gradients(std::int64_t longest, std::uint64_t seed) {
  const int failed = check_all<float>(longest, seed, "float32") + check_all<double>(longest, seed, "float64");
  std::printf("conjugate gradients\n");
  return failed;
}

}  // namespace isofold_test
