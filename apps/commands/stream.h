#pragma once
// Runs one request and shows its text as it comes: the engine thread hands events over, this thread writes them, so
// that a slow terminal never holds the engine. Ctrl-C, and a reader that went away, cancel the request.

#include <functional>
#include <optional>
#include <string>

#include "candor/engine.h"

namespace candor::apps {

struct StreamOutcome {
  std::string text;
  FinishReason finish = FinishReason::kCancelled;
  std::optional<double> score;
  std::vector<CompletedChoice> others;  // choices 1 and on, which are not written
  RequestSummary summary;
  std::vector<TokenId> tokens;
  bool was_interrupted = false;
  bool reader_gone = false;
};

// write: shows a piece of the first choice's text; false when nobody reads any more.
Result<StreamOutcome> stream_request(Engine& engine, const Request& request,
                                     const std::function<bool(std::string_view)>& write);

// Speeds as shares of this machine's measured limits; 0 where nothing was computed or no limit is known.
struct LimitShares {
  double prefill_int8 = 0;  // two int8 operations a parameter and token
  double decode_dram = 0;   // the weights read once a token
};
LimitShares shares_of_limits(const StreamOutcome& outcome, const ModelInfo& info);

// "TTFT 3.1 ms | prefill 12 tokens, 3 870 tok/s, 4 % of int8 | decode 39 tokens, 640 tok/s, 21 % of DRAM | end of text
// | seed 7"
std::string summary_line(const StreamOutcome& outcome, const ModelInfo& info);

}  // namespace candor::apps
