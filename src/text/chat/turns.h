#pragma once
// Finds where the second and the third message of a chat begin in its prompt, by control tokens alone: most templates
// open each message with the same one, which is the first that occurs again and ends nothing. Any thread.

#include <array>
#include <cstdint>
#include <span>

#include "base/ids.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

// Tokens before the second message and before the third; 0 where there is none, or nothing shows it.
using Turns = std::array<int32_t, 2>;
Turns find_turns(std::span<const TokenId> prompt, const Tokenizer& tokenizer);

}  // namespace candor::text
