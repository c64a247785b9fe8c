#pragma once
// Puts a load on an engine in this process and notes when every token came.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/bench/load.h"
#include "candor/engine.h"

namespace candor::apps {

struct LoadRecord {
  int32_t n_prompt = 0;
  std::vector<double> token_s{};  // when each came, since the load began
  double submitted_s = 0;
  double end_s = 0;
  RequestSummary summary{};
  std::vector<TokenId> tokens{};
  bool is_done = false;  // ended by itself
  std::string error{};   // why it was refused or failed

  double ttft_ms() const { return 1e3 * (token_s.front() - submitted_s); }
  double e2e_ms() const { return 1e3 * (end_s - submitted_s); }
  // Time per token after the first.
  double tpot_ms() const {
    const int64_t n = std::max(summary.usage.completion_tokens, static_cast<int64_t>(token_s.size()));
    return n < 2 ? 0.0 : 1e3 * (token_s.back() - token_s.front()) / static_cast<double>(n - 1);
  }
};

struct LoadRunOptions {
  int64_t max_in_flight = 0;  // waits for an answer before it sends more; 0 = sends when the time has come
  int32_t n_shared = 0;       // first tokens that all prompts have in common
  uint64_t seed = 1;
};

// Steps that only decoded.
struct DecodeSteps {
  int64_t n_steps = 0;
  int64_t n_tokens = 0;
  double ms = 0;
};

struct LoadRun {
  std::vector<LoadRecord> records{};  // in the order of the load
  DecodeSteps decode{};
  double duration_s = 0;
  bool was_interrupted = false;
};

// Greedy, to the full length; returns when every request has ended. Ctrl-C cancels what is left.
LoadRun run_load(Engine& engine, const Load& load, const LoadRunOptions& options);

}  // namespace candor::apps
