#pragma once
// How long things took since an engine was opened, over all requests, as distributions. Buckets are log-spaced, eight
// to a power of two, so that a quantile is at most 12.5 % above the true one. Plain values, copied at one moment: any
// thread. Milliseconds where the name ends in _ms, else counts.

#include <array>
#include <cstdint>
#include <vector>

#include "candor/drafts.h"
#include "candor/event.h"

namespace candor {

struct Distribution {
  struct Bucket {
    double upper = 0;         // largest value of the bucket
    std::uint64_t count = 0;  // of this bucket alone
  };
  std::uint64_t count = 0;
  double sum = 0;
  double max = 0;
  double p50 = 0;
  double p90 = 0;
  double p99 = 0;
  std::vector<Bucket> buckets{};  // those that are not empty, ascending
};

struct EngineMetrics {
  Distribution queue_ms{};  // per request; as in RequestTimings
  Distribution ttft_ms{};
  Distribution e2e_ms{};
  Distribution itl_ms{};   // per token after a choice's first
  Distribution tpot_ms{};  // per request: the mean of these
  Distribution prompt_tokens{};
  Distribution completion_tokens{};
  Distribution step_ms{};                                  // planning, computing and choosing
  Distribution step_rows{};                                // tokens computed in one step
  std::array<std::uint64_t, kFinishReasons> n_finished{};  // choices, by FinishReason
  std::uint64_t n_refused = 0;                             // by submit()
  std::uint64_t n_overloaded = 0;                          // of them, because the engine was full
  DraftUsages drafts{};                                    // of requests that ended
  // Exceptions that were met and ended what they were met in: of callbacks, and where memory ran out. Each is a mistake
  // in a callback, or a lack of memory.
  std::uint64_t n_faults = 0;
};

}  // namespace candor
