#pragma once
// Runs one request and shows its text as it comes: the engine thread hands events over, this thread writes them, so
// that a slow terminal never holds the engine. Ctrl-C, and a reader that went away, cancel the request.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "candor/engine.h"

namespace candor::apps {

// The first choice, which is written as it comes, and the others.
struct StreamOutcome : CompletedChoice {
  StreamOutcome() { finish = FinishReason::kCancelled; }

  std::vector<CompletedChoice> others{};
  RequestSummary summary{};
  int32_t n_beams = 0;  // of a search; 0: none
  bool was_drawn = false;  // its seed gives the same again
  bool was_interrupted = false;
  bool reader_gone = false;
};

// write: shows a piece of the first choice's text; false when nobody reads any more.
Result<StreamOutcome> stream_request(Engine& engine, const Request& request,
                                     const std::function<bool(std::string_view)>& write);

// Speeds as shares of this machine's measured limits; 0 where nothing was computed or no limit is known.
struct LimitShares {
  double prefill = 0;      // two operations a parameter and token, in the model's arithmetic
  double decode_dram = 0;  // the weights read once a token
};
LimitShares shares_of_limits(const StreamOutcome& outcome, const ModelInfo& info);

// "TTFT 3.1 ms (queue 0.1, template 0.2, tokenise 0.1, prefill 2.7) | prefill 12 tokens, 3 870 tok/s, 4 % of int8 |
// decode 39 tokens, 640 tok/s, 21 % of DRAM, ITL 1.6 ms | end of text | seed 7"; without a seed where nothing was
// drawn.
std::string summary_line(const StreamOutcome& outcome, const ModelInfo& info);

// What is written behind the first answer's text: the others, each with its number (and score), and logprobs.
std::string rest_of_answers(const Engine& engine, const StreamOutcome& outcome);
// One line for each token: its logprob, and those of the likeliest. Nothing where none were asked for.
std::string logprobs_text(const Engine& engine, const CompletedChoice& answer);

}  // namespace candor::apps
