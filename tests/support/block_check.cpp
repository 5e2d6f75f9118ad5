#include "support/block_check.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace isofold_test {
namespace {

__extension__ using Wide = __int128;

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

// Elements begin .. end - 1 and the sum of their whole numbers.
struct Span {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t sum = 0;

  [[nodiscard]] std::int64_t count() const { return end - begin; }
};

struct Block {
  Span span;
  bool begins_row = false;
};

bool mean_below(const Span& a, const Span& b) {
  return static_cast<Wide>(a.sum) * b.count() < static_cast<Wide>(b.sum) * a.count();
}

// A part of a block whose other parts lie in other segments, and its fit, the same in all of it.
struct Part {
  Span span;
  std::uint32_t fit = 0;
};

struct Segment {
  Part head;  // before the first start
  bool started = false;
  // The blocks that begin and end here: the outer ones are compared with their neighbours later.
  bool whole = false;
  Block first;
  Block last;
  std::int64_t blocks = 0;
  std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
  std::int64_t longest = 0;
  // From the last start to the end of the segment.
  Part tail;
  bool tail_begins_row = false;
};

// The elements of `span` after `before` others of a block of mean block.sum / block.count(): the position
// where the running mean first is below the block's, or -1. What is added up is (running sum) * count -
// (block sum) * (running count), below 2^24 * 2^36 * 2^36 in magnitude.
std::int64_t first_below(const std::int32_t* values, const Span& span, const Span& before,
                         const Span& block) {
  Wide above = static_cast<Wide>(before.sum) * block.count() - static_cast<Wide>(block.sum) * before.count();
  std::int64_t sign = 0;
  for (std::int64_t i = 0; i < span.count(); ++i) {
    above += values[i] * block.count() - block.sum;
    sign |= static_cast<std::int64_t>(above >> 64);
  }
  if (sign >= 0) return -1;
  above = static_cast<Wide>(before.sum) * block.count() - static_cast<Wide>(block.sum) * before.count();
  for (std::int64_t i = 0; i < span.count(); ++i) {
    above += values[i] * block.count() - block.sum;
    if (above < 0) return span.begin + i;
  }
  return -1;
}

}  // namespace

float rounded_grid_mean(std::int64_t sum, std::int64_t count) {
  if (sum == 0) return 0.0F;
  // The quotient gets 24 bits and a remainder.
  Wide dividend = sum < 0 ? -static_cast<Wide>(sum) : static_cast<Wide>(sum);
  const Wide least = static_cast<Wide>(count) << 23;
  int shift = 0;
  while (dividend < least) {
    dividend *= 2;
    ++shift;
  }
  auto quotient = static_cast<std::int64_t>(dividend / count);
  const Wide twice_rest = dividend % count * 2;
  if (twice_rest > count || (twice_rest == count && quotient % 2 != 0)) ++quotient;
  const float magnitude = std::ldexp(static_cast<float>(quotient), kGridExponent - shift);
  return sum < 0 ? -magnitude : magnitude;
}

class BlockCheck::State {
 public:
  State(const GridRows& rows, int threads, std::int64_t segment)
      : rows_(rows), threads_(threads), segment_(segment) {}

  void take(const float* fit, const std::uint8_t* starts, std::int64_t count) {
    const std::int64_t begin = taken_;
    const std::size_t done = segments_.size();
    const std::int64_t more = (count + segment_ - 1) / segment_;
    segments_.resize(done + static_cast<std::size_t>(more));
    in_parallel(more, [&](std::int64_t s, std::vector<std::int32_t>& values) {
      const std::int64_t from = s * segment_;
      judge({begin + from, begin + std::min(count, from + segment_), 0}, fit + from, starts + from, values,
            segments_[done + static_cast<std::size_t>(s)]);
    });
    taken_ += count;
  }

  BlockReport finish() {
    if (taken_ != rows_.total()) fault(taken_, "elements are missing");
    report_.shortest = std::numeric_limits<std::int64_t>::max();
    for (const Segment& segment : segments_) {
      if (segment.head.span.count() > 0) open_.push_back(segment.head);
      if (!segment.started) continue;
      close();
      if (segment.whole) {
        follow(segment.first);
        previous_ = segment.last;
        count_blocks(segment.blocks, segment.shortest, segment.longest);
      }
      open_.push_back(segment.tail);
      open_begins_row_ = segment.tail_begins_row;
    }
    close();
    in_parallel(static_cast<std::int64_t>(unjudged_.size()),
                [&](std::int64_t k, std::vector<std::int32_t>& values) {
                  const Unjudged& part = unjudged_[static_cast<std::size_t>(k)];
                  values.resize(static_cast<std::size_t>(part.span.count()));
                  rows_.fill(part.span.begin, part.span.end, values.data());
                  judge_means(values.data(), part.span, part.before, part.block);
                });
    return report_;
  }

 private:
  // A part of a crossing block whose running means wait for the block's.
  struct Unjudged {
    Span span;
    Span before;
    Span block;
  };

  template <class Work>
  void in_parallel(std::int64_t count, Work work) {
    std::atomic<std::int64_t> next{0};
    const auto run = [&] {
      std::vector<std::int32_t> values;
      for (std::int64_t k = next++; k < count; k = next++) work(k, values);
    };
    std::vector<std::thread> helpers;
    for (int t = 1; t < threads_ && t < count; ++t) helpers.emplace_back(run);
    run();
    for (std::thread& helper : helpers) helper.join();
  }

  void fault(std::int64_t at, const char* what) {
    const std::scoped_lock lock(mutex_);
    if (report_.faults++ == 0 || at < first_at_) {
      first_at_ = at;
      report_.first_fault = std::string(what) + ", at " + std::to_string(at);
    }
  }

  void judge_means(const std::int32_t* values, const Span& span, const Span& before, const Span& block) {
    const std::int64_t at = first_below(values, span, before, block);
    if (at >= 0) fault(at, "a first part of a block has a mean below the block's");
  }

  // One segment: its whole blocks entirely, what remains as parts.
  void judge(const Span& all, const float* fit, const std::uint8_t* starts, std::vector<std::int32_t>& values,
             Segment& segment) {
    values.resize(static_cast<std::size_t>(all.count()));
    rows_.fill(all.begin, all.end, values.data());
    const auto part_of = [&](std::int64_t begin, std::int64_t end) {
      Part part{{all.begin + begin, all.begin + end, 0}, begin < end ? bits_of(fit[begin]) : 0};
      std::uint32_t differing = 0;
      for (std::int64_t i = begin; i < end; ++i) {
        part.span.sum += values[static_cast<std::size_t>(i)];
        differing |= bits_of(fit[i]) ^ part.fit;
      }
      if (differing != 0) fault(all.begin + begin, "the fit differs within a block");
      return part;
    };
    const auto& offsets = rows_.offsets();
    auto row = std::lower_bound(offsets.begin(), offsets.end(), all.begin);
    // Whether `at` begins a row; rows that begin before it without a block are faults.
    const auto begins_row = [&](std::int64_t at) {
      for (; *row < at; ++row) fault(*row, "a row begins without a block");
      const bool begins = *row == at && at < rows_.total();
      while (row + 1 != offsets.end() && *row == at) ++row;  // empty rows too
      return begins;
    };
    std::int64_t open = -1;  // where the open block began
    bool open_begins_row = false;
    for (std::int64_t i = 0; i < all.count(); ++i) {
      if (starts[i] == 0) continue;
      if (starts[i] != 1) fault(all.begin + i, "a flag is neither 0 nor 1");
      const Part part = part_of(std::max<std::int64_t>(open, 0), i);
      if (open < 0) {
        segment.head = part;
      } else {
        const Block block{part.span, open_begins_row};
        judge_means(values.data() + open, block.span, {}, block.span);
        judge_fit(part, block.span);
        if (segment.whole) rises(segment.last, block);
        if (!segment.whole) segment.first = block;
        segment.last = block;
        segment.whole = true;
        ++segment.blocks;
        segment.shortest = std::min(segment.shortest, block.span.count());
        segment.longest = std::max(segment.longest, block.span.count());
      }
      open = i;
      open_begins_row = begins_row(all.begin + i);
    }
    const Part rest = part_of(std::max<std::int64_t>(open, 0), all.count());
    segment.started = open >= 0;
    (segment.started ? segment.tail : segment.head) = rest;
    segment.tail_begins_row = open_begins_row;
    for (; *row < all.end; ++row) fault(*row, "a row begins without a block");
  }

  void judge_fit(const Part& part, const Span& block) {
    if (part.fit != bits_of(rounded_grid_mean(block.sum, block.count()))) {
      fault(part.span.begin, "the fit is not the block's mean rounded once");
    }
  }

  void rises(const Block& before, const Block& block) {
    if (block.begins_row || mean_below(before.span, block.span)) return;
    fault(block.span.begin, "a block's mean is not above the one before");
  }

  void follow(const Block& block) {
    if (previous_.span.count() > 0) rises(previous_, block);
    previous_ = block;
  }

  void count_blocks(std::int64_t blocks, std::int64_t shortest, std::int64_t longest) {
    report_.blocks += blocks;
    report_.shortest = std::min(report_.shortest, shortest);
    report_.longest = std::max(report_.longest, longest);
  }

  // All parts of the open block are known.
  void close() {
    if (open_.empty()) return;
    Block block{{open_.front().span.begin, open_.back().span.end, 0}, open_begins_row_};
    for (const Part& part : open_) block.span.sum += part.span.sum;
    Span before{block.span.begin, block.span.begin, 0};
    for (const Part& part : open_) {
      judge_fit(part, block.span);
      unjudged_.push_back({part.span, before, block.span});
      before.end = part.span.end;
      before.sum += part.span.sum;
    }
    follow(block);
    count_blocks(1, block.span.count(), block.span.count());
    open_.clear();
  }

  const GridRows& rows_;
  int threads_;
  std::int64_t segment_;
  std::int64_t taken_ = 0;
  std::vector<Segment> segments_;
  std::vector<Part> open_;
  bool open_begins_row_ = false;
  Block previous_;
  std::vector<Unjudged> unjudged_;
  std::mutex mutex_;
  BlockReport report_;
  std::int64_t first_at_ = 0;
};

BlockCheck::BlockCheck(const GridRows& rows, int threads, std::int64_t segment)
    : state_(std::make_unique<State>(rows, threads, segment)) {}
BlockCheck::~BlockCheck() = default;

void BlockCheck::take(const float* fit, const std::uint8_t* block_starts, std::int64_t count) {
  state_->take(fit, block_starts, count);
}

BlockReport BlockCheck::finish() { return state_->finish(); }

}  // namespace isofold_test
