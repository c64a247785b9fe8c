#pragma once
// A caller's own say in the choice of each token: it sees the row of logits before anything else does, and may change
// it. Called on the engine's thread, which computes for nobody else meanwhile: slow ones slow all requests. It must not
// ask the engine. With one, nothing is speculated; logprobs and explanations are those of the row that it leaves. For
// one token it may be called more than once (a constraint may want to know the token early), so it should follow from
// its arguments alone; then the answer does as well.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "candor/ids.h"

namespace candor {

struct LogitsRow {
  std::span<const TokenId> text;  // prompt and output before the token, as far as they were not cropped
  std::size_t n_output = 0;       // of them, how many are output
  std::int32_t choice = 0;        // of Request::n; 0 in a beam search
  std::span<float> logits;        // [n_vocab]; -infinity: not this token. NaN and infinity are errors
};

// False ends the request with an error.
using LogitsHook = std::function<bool(const LogitsRow&)>;

}  // namespace candor
