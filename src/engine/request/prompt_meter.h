#pragma once
// How much of one request's prompt is read. Written by the engine thread once a step, read by any thread.

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "candor/info.h"

namespace candor::engine {

class PromptMeter {
 public:
  explicit PromptMeter(int64_t n_prompt) : n_prompt_(n_prompt) {}

  // n_computed: tokens of the sequence whose K/V is there, its output's included.
  void note(int64_t n_computed, int64_t n_cached) {
    n_cached_.store(n_cached, std::memory_order_relaxed);
    n_read_.store(std::min(n_computed, n_prompt_), std::memory_order_relaxed);
  }
  PromptProgress progress() const {
    return {.n_prompt = n_prompt_,
            .n_cached = n_cached_.load(std::memory_order_relaxed),
            .n_read = n_read_.load(std::memory_order_relaxed)};
  }

 private:
  const int64_t n_prompt_;
  std::atomic<int64_t> n_cached_{0};
  std::atomic<int64_t> n_read_{0};
};

}  // namespace candor::engine
