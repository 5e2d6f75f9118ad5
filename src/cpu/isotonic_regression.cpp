// The CPU's schedule. A row of up to one chunk is solved where it is met; longer ones as chunk hulls, a merge
// tree and a write-out; the longest rows are cut over all threads, one row after the other, and the rest are
// dealt out whole.
#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "cpu/chunk.hpp"
#include "cpu/counters.hpp"
#include "cpu/cpu.hpp"
#include "cpu/lane_rows.hpp"
#include "cpu/parallel.hpp"
#include "cpu/row_fit.hpp"
#include "cpu/row_hull.hpp"
#include "cpu/vector_lanes.hpp"

namespace isofold::cpu {
namespace {

constexpr std::int64_t kDefaultChunk = 4096;
constexpr std::int64_t kPiece = 1 << 15;  // elements worth a visit to the shared counter

// What one thread works in.
struct Workspace {
  Workspace(std::int64_t chunk_size, bool weighted)
      : chunk(chunk_size, weighted), mask(static_cast<std::size_t>(chunk_size / kTile + 1)) {}

  Chunk chunk;
  std::vector<std::uint32_t> mask;
  LaneRows lanes;
};

class Solver {
 public:
  Solver(const IsotonicProblem& problem, const IsotonicFit& out, const Executor& executor)
      : problem_(problem),
        out_(out),
        asked_(executor),
        executor_(executor),
        chunk_size_(executor.chunk_size > 0 ? executor.chunk_size : kDefaultChunk),
        format_(format_of(out.fit.present() ? out.fit.type : problem.values.type)),
        bounds_(problem.lower_bound, problem.upper_bound, format_) {
    // Workspaces come zeroed, which takes longer than a small batch.
    const std::int64_t longest = problem.rows.offsets != nullptr ? problem.rows.total() : problem.rows.length;
    capacity_ = std::min(chunk_size_, (longest / kTile + 1) * kTile);
    const std::int64_t pieces = problem.rows.total() / kPiece + 1;
    threads_ = pieces == 1 ? 1 : static_cast<int>(std::min<std::int64_t>(thread_count(executor), pieces));
    workspaces_.resize(static_cast<std::size_t>(threads_));
    if (asked_.should_stop != nullptr) {
      executor_.should_stop = &Solver::stop_once_told;
      executor_.should_stop_context = this;
    }
  }

  Outcome run() {
    const Rows& rows = problem_.rows;
    const std::int64_t split = threads_ > 1 ? std::max(2 * chunk_size_, kPiece * threads_) : rows.total() + 1;
    if (rows.offsets != nullptr || rows.length >= split) {
      for (std::int64_t r = 0; r < rows.count; ++r) {
        if (rows.end(r) - rows.begin(r) < split) continue;
        if (!solve_row(r, threads_)) return stopped();
      }
    }
    // The other rows, by pieces of the batch: a piece owns the rows that begin in it.
    const bool finished = parallel_for(
        executor_, threads_, rows.total(), kPiece, [&](int worker, std::int64_t begin, std::int64_t end) {
          for (std::int64_t r = first_row_from(begin); r < rows.count && rows.begin(r) < end; ++r) {
            const std::int64_t length = rows.end(r) - rows.begin(r);
            if (length == 0 || length >= split) continue;
            if (interrupted_ || !allowed_) return;
            if (fits_lanes(r, length, end)) {
              solve_lane_rows(r, length, workspace(worker));
              r += kLanes - 1;
              continue;
            }
            if (length <= chunk_size_) {
              solve_short_row(r, workspace(worker));
            } else {
              solve_row(r, 1, worker);
            }
          }
        });
    return finished && !interrupted_ && allowed_ ? Outcome::done : stopped();
  }

 private:
  [[nodiscard]] Outcome stopped() const { return allowed_ ? Outcome::interrupted : Outcome::bad_input; }

  Workspace& workspace(int worker) {
    auto& slot = workspaces_[static_cast<std::size_t>(worker)];
    if (!slot) slot = std::make_unique<Workspace>(capacity_, problem_.weights.present());
    return *slot;
  }

  [[nodiscard]] std::int64_t first_row_from(std::int64_t element) const {
    const Rows& rows = problem_.rows;
    if (rows.offsets == nullptr)
      return rows.length == 0 ? rows.count : (element + rows.length - 1) / rows.length;
    return std::lower_bound(rows.offsets, rows.offsets + rows.count, element) - rows.offsets;
  }

  [[nodiscard]] RowView view(std::int64_t row) const {
    const std::int64_t begin = problem_.rows.begin(row);
    return {problem_.values, problem_.weights, begin, problem_.rows.end(row) - begin,
            problem_.increasing ? 1.0 : -1.0};
  }
  [[nodiscard]] FitTarget target(const RowView& row) const {
    return {out_, row.begin, row.sign, format_, bounds_};
  }

  // Whether rows r .. r + kLanes - 1, all of which begin before `end`, can be fitted side by side.
  [[nodiscard]] bool fits_lanes(std::int64_t r, std::int64_t length, std::int64_t end) const {
    const Rows& rows = problem_.rows;
    if (problem_.weights.present() || (format_.precision != 53 && format_.precision != 24)) return false;
    if (length < 2 || length > std::min<std::int64_t>(kLaneRow, chunk_size_)) return false;
    if (r + kLanes > rows.count || rows.begin(r + kLanes - 1) >= end) return false;
    if (rows.offsets == nullptr) return true;
    for (std::int64_t i = r + 1; i < r + kLanes; ++i) {
      if (rows.end(i) - rows.begin(i) != length) return false;
    }
    return true;
  }

  void solve_lane_rows(std::int64_t r, std::int64_t length, Workspace& work) {
    RowView rows = view(r);
    rows.length = kLanes * length;
    const FitTarget all = target(rows);
    const bool whole_vectors = length % kLanes == 0;
    const double* values = whole_vectors ? values_in_place(rows, 0) : nullptr;
    if (values == nullptr) {
      load_values(rows, 0, rows.length, work.lanes.values());
      values = work.lanes.values();
    }
    double* direct = whole_vectors ? fit_in_place(all) : nullptr;
    double* fits = direct != nullptr ? direct : work.lanes.fits();
    std::uint8_t* wanted = out_.block_starts != nullptr ? out_.block_starts + rows.begin : nullptr;
    std::uint8_t* starts = whole_vectors && wanted != nullptr ? wanted : work.lanes.starts();
    const std::uint32_t failed = LaneRows::fit(values, static_cast<int>(length), format_, fits, starts);
    if (out_.fit.present() && direct == nullptr) store_fit(all, 0, rows.length, fits);
    if (wanted != nullptr && wanted != starts) std::copy_n(starts, rows.length, wanted);
    for (std::uint32_t left = failed; left != 0 && allowed_; left &= left - 1)
      solve_short_row(r + __builtin_ctz(left), work);
  }

  void solve_short_row(std::int64_t r, Workspace& work) {
    const RowView row = view(r);
    if (!work.chunk.load(row, 0, row.length)) {
      allowed_ = false;
      return;
    }
    std::fill_n(work.mask.begin(), row.length / kTile + 1, 0U);
    work.chunk.find_hull(work.mask.data());
    write_chunk_fit(&work.chunk, work.mask.data(), target(row));
  }

  // A row of several chunks over `threads` threads; with one, in `worker`'s workspace.
  bool solve_row(std::int64_t r, int threads, int worker = 0) {
    const RowView row = view(r);
    RowHull hull(row, chunk_size_);
    const std::int64_t grain = std::max<std::int64_t>(1, kPiece / chunk_size_);
    const auto each = [&](std::int64_t count, std::int64_t pieces, auto&& body) {
      if (threads == 1) {
        // On a worker of an outer loop should_stop is polled between rows, or here on the calling thread.
        return run_alone(worker, count, pieces, [&](std::int64_t i) { body(i, workspace(worker)); });
      }
      return parallel_for(executor_, threads, count, pieces,
                          [&](int w, std::int64_t begin, std::int64_t end) {
                            for (std::int64_t i = begin; i < end; ++i) body(i, workspace(w));
                          });
    };
    if (!each(hull.chunks(), grain, [&](std::int64_t j, Workspace& work) {
          if (allowed_ && !hull.add_chunk(j, &work.chunk)) allowed_ = false;
        })) {
      return false;
    }
    if (!allowed_) return false;
    hull.place_chunks();
    for (int level = 0; level < hull.levels(); ++level) {
      if (!each(hull.merges(level), 64, [&](std::int64_t i, Workspace&) { hull.merge(level, i); }))
        return false;
    }
    RowFitWriter writer(hull, row, target(row));
    tally(Count::root_segments, writer.segments());
    return each(writer.segments(), 1024, [&](std::int64_t i, Workspace&) { writer.find_leaving_mean(i); }) &&
           each(hull.chunks(), grain,
                [&](std::int64_t j, Workspace& work) { writer.write_chunk(j, &work.chunk); });
  }

  // Polled on the calling thread only.
  static bool stop_once_told(void* context) {
    auto* solver = static_cast<Solver*>(context);
    if (!solver->interrupted_ && solver->asked_.should_stop(solver->asked_.should_stop_context)) {
      solver->interrupted_ = true;
    }
    return solver->interrupted_;
  }

  template <class Body>
  bool run_alone(int worker, std::int64_t count, std::int64_t pieces, Body&& body) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (worker == 0 && i % pieces == 0 && executor_.should_stop != nullptr &&
          executor_.should_stop(executor_.should_stop_context)) {
        return false;
      }
      body(i);
    }
    return true;
  }

  const IsotonicProblem& problem_;
  const IsotonicFit& out_;
  const Executor& asked_;  // as the caller gave it
  Executor executor_;      // the same, but should_stop is asked no more once it said so
  std::int64_t chunk_size_;
  std::int64_t capacity_;  // elements of a chunk that a row here can fill
  Format format_;
  Bounds bounds_;
  int threads_ = 1;
  std::vector<std::unique_ptr<Workspace>> workspaces_;
  std::atomic<bool> allowed_{true};
  std::atomic<bool> interrupted_{false};
};

}  // namespace

Outcome isotonic_regression(const IsotonicProblem& problem, const IsotonicFit& out,
                            const Executor& executor) {
  return Solver(problem, out, executor).run();
}

}  // namespace isofold::cpu
