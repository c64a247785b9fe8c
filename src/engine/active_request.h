#pragma once
// A request on its way through the engine: made and checked on the caller's thread, then owned by the engine thread.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "candor/event.h"
#include "constrain/constraint.h"
#include "engine/output_text.h"
#include "engine/stopwatch.h"
#include "sample/chain.h"
#include "sched/sequence.h"

namespace candor::engine {

using EventCallback = std::function<void(const TokenEvent&)>;

// How a request's tokens are chosen and when it ends.
struct ChoiceRules {
  sample::ChainParams chain{};
  uint64_t seed = 0;
  int32_t n_logprobs = -1;
  int64_t max_tokens = 0;  // 0 = no limit
  std::vector<TokenId> stop_ids{};
  bool ignore_eos = false;
};

struct ActiveRequest {
  ActiveRequest(OutputText text, int64_t now_ns) : output(std::move(text)), watch(now_ns) {}

  sched::SequenceSpec spec{};  // handed over to the scheduler
  ChoiceRules rules{};
  std::unique_ptr<constrain::Constraint> constraint{};  // nullptr: none
  EventCallback callback{};
  OutputText output;
  Stopwatch watch;
  RequestSummary summary{};
  bool is_cancelled = false;
};

}  // namespace candor::engine
