#pragma once
// Runs one request and shows its text as it comes: the engine thread hands events over, this thread writes them, so
// that a slow terminal never holds the engine. Ctrl-C, and a reader that went away, cancel the request.

#include <functional>
#include <string>

#include "candor/engine.h"

namespace candor::apps {

struct StreamOutcome {
  std::string text;
  FinishReason finish = FinishReason::kCancelled;
  RequestSummary summary;
  std::vector<TokenId> tokens;
  bool was_interrupted = false;
  bool reader_gone = false;
};

// write: shows a piece of text; false when nobody reads any more.
Result<StreamOutcome> stream_request(Engine& engine, const Request& request,
                                     const std::function<bool(std::string_view)>& write);

// "TTFT 3.1 ms | prefill 12 tokens, 3 870 tok/s | decode 39 tokens, 640 tok/s | stopped: end of text | seed 7"
std::string summary_line(const StreamOutcome& outcome);

}  // namespace candor::apps
