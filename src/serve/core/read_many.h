#pragma once
// Reads many texts, as many at once as the engine takes, and hands over what came of them in their order. For who calls
// from one thread: the command line, the C interface.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "candor/engine.h"
#include "candor/reading.h"
#include "candor/request.h"

namespace candor::serve {

// What came of one text.
struct ReadText {
  std::vector<float> numbers;     // a vector, or rows; with prompt_logprobs 1 a token's and the likeliest one's
  std::vector<WordWeight> words;  // of a sparse vector
  int64_t n_tokens = 0;
  int64_t n_cut = 0;  // tokens
};

struct ReadMany {
  std::span<const Request> requests{};
  // In the order of the requests, as soon as those before have come. On the caller's thread.
  std::function<void(size_t index, ReadText text)> on_read{};
  // Asked every now and then; false ends it early. Empty: it goes on.
  std::function<bool()> goes_on{};
};

// The error of the first request that was refused or failed, which names its number; nothing is in work any more then.
// True: all were read. REQUIRES: not on the engine's thread.
Result<bool> read_many(Engine& engine, const ReadMany& reading);

}  // namespace candor::serve
