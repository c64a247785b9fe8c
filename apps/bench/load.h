#pragma once
// A load: which requests come when, and how long they are. From a trace of real requests or made up; the same seed
// gives the same load. Trace format: lines of TIMESTAMP,ContextTokens,GeneratedTokens below a header, as the Azure LLM
// inference traces have them (Patel et al., "Splitwise", ISCA 2024).

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "candor/request.h"

namespace candor::apps {

struct LoadRequest {
  double at_s = 0;  // after the first
  int32_t n_prompt = 0;
  int32_t n_new = 0;
};

struct Load {
  std::vector<LoadRequest> requests{};
  int32_t n_cut = 0;  // requests shortened to fit the context
};

struct LoadSpec {
  std::optional<std::filesystem::path> trace{};  // absent: n_prompt and n_new for all, random gaps
  int64_t n_requests = 64;
  int32_t n_prompt = 256;
  int32_t n_new = 64;
  int64_t n_burst = 1;        // so many come at the same time
  double requests_per_s = 0;  // gaps are scaled to it; 0 = the trace's own, or all at once
  int32_t n_ctx = 0;          // longer requests are cut to it
  uint64_t seed = 1;
};

Result<Load> make_load(const LoadSpec& spec);

// Random tokens of request number `index`; the first n_shared are the same for all.
TokenPrompt make_prompt(int32_t n_tokens, int32_t n_shared, int32_t n_vocab, uint64_t seed, uint32_t index);

}  // namespace candor::apps
