#pragma once
// One request of a batch's input. A line is
//   {"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": {...}}   OpenAI's batch format, or
//   {"messages": [...], ...}  {"prompt": "...", ...}  {"input": "...", ...}               a body alone, or
//   "..."                                                                                 a prompt.
// Without a custom_id it is called by its line: "line-7".

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace candor::serve {

struct BatchLine {
  std::string custom_id;
  std::string url;
  std::string body;     // JSON, with a seed where tokens are drawn
  uint64_t digest = 0;  // of what the answer follows from: model, url and body
};

bool is_batch_url(std::string_view url);

// seed: of the batch; a body without one gets a seed of its own that follows from it and the custom_id, so that an
// answer does not depend on what else the batch has, or on where it was interrupted. model: what says which one it is.
// Refuses what is no such line, other urls, and streams.
Result<BatchLine> parse_batch_line(std::string_view text, size_t number, uint64_t seed, std::string_view model);

}  // namespace candor::serve
