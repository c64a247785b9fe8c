#pragma once
// How the units of a job are dealt out to threads: one contiguous range for each, in proportion to how fast it is
// expected to be. A thread takes a part of what is left of its own range from the front; one that is done takes as much
// from the back of others. So a thread that is slower than expected, or that the system has not scheduled, holds nobody
// up for longer than the part that it took last.
//
// deal() is the caller's alone, while nothing is left of the job before; take() is anybody's.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace candor::platform {

class WorkShares {
 public:
  static constexpr int64_t kMostOfThread = 65535;  // grains that a share's 16 bits can count
  // Few threads take halves, few pieces with small ones at the end. Among many, one that took half of its range would
  // be waited for: by the time that a range takes, all others have emptied theirs.
  static constexpr int32_t kMostThreadsOfHalves = 4;

  struct Taken {
    int64_t first = 0;
    int64_t count = 0;
  };

  // weights: how fast each thread is, in any unit; empty: all alike.
  explicit WorkShares(int32_t n_threads, std::vector<int32_t> weights = {})
      : shares_(static_cast<size_t>(n_threads)),
        first_(static_cast<size_t>(n_threads) + 1),
        weights_(std::move(weights)),
        part_(n_threads <= kMostThreadsOfHalves ? 2 : 4) {
    if (weights_.size() != shares_.size()) weights_.assign(shares_.size(), 1);
    for (const int32_t weight : weights_) weight_sum_ += weight;
  }

  // Grains that no range may exceed, whatever its weight.
  int64_t most_grains() const {
    return kMostOfThread * weight_sum_ / *std::max_element(weights_.begin(), weights_.end());
  }

  // REQUIRES: n_grains <= most_grains().
  void deal(uint32_t job, int64_t n_grains) {
    int64_t weight = 0;
    for (size_t thread = 0; thread < shares_.size(); ++thread) {
      first_[thread] = n_grains * weight / weight_sum_;
      weight += weights_[thread];
      first_[thread + 1] = n_grains * weight / weight_sum_;
    }
    for (size_t thread = 0; thread < shares_.size(); ++thread) {
      const auto count = static_cast<uint64_t>(first_[thread + 1] - first_[thread]);
      shares_[thread].state.store((uint64_t{job} << 32) | count, std::memory_order_release);
    }
  }

  // Some grains of owner's range: the first for the owner, the last for others. Nothing when none is left.
  std::optional<Taken> take(int32_t owner, int32_t thread) {
    std::atomic<uint64_t>& state = shares_[static_cast<size_t>(owner)].state;
    uint64_t seen = state.load(std::memory_order_acquire);
    uint64_t next = 0;
    uint64_t end = 0;
    uint64_t count = 0;
    do {
      next = (seen >> 16) & 0xffff;
      end = seen & 0xffff;
      if (next >= end) return std::nullopt;
      count = std::max(uint64_t{1}, (end - next) / part_);
    } while (!state.compare_exchange_weak(seen, owner == thread ? seen + (count << 16) : seen - count,
                                          std::memory_order_acq_rel, std::memory_order_acquire));
    const uint64_t taken = owner == thread ? next : end - count;
    return Taken{first_[static_cast<size_t>(owner)] + static_cast<int64_t>(taken), static_cast<int64_t>(count)};
  }

 private:
  // Grains [next, end) of one thread's range that nobody has taken, with the number of the job that they belong to:
  // (job << 32 | next << 16 | end), so that taking a grain and checking the job is one atomic step.
  struct alignas(64) Share {
    std::atomic<uint64_t> state{0};
  };

  std::vector<Share> shares_;
  std::vector<int64_t> first_;  // grain of each range, and behind the last
  std::vector<int32_t> weights_;
  int64_t weight_sum_ = 0;
  uint64_t part_;  // of what is left, one by this
};

}  // namespace candor::platform
