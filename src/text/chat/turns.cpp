#include "text/chat/turns.h"

#include <algorithm>
#include <cstddef>

namespace candor::text {

Turns find_turns(std::span<const TokenId> prompt, const Tokenizer& tokenizer) {
  const auto opens = [&](TokenId id) {
    return tokenizer.kind(id) == TokenKind::kControl && id != tokenizer.special().bos &&
           std::ranges::find(tokenizer.end_tokens(), id) == tokenizer.end_tokens().end();
  };
  Turns turns{};
  const auto opener = std::ranges::find_if(prompt, opens);
  auto at = opener;
  for (int32_t& turn : turns) {
    if (at == prompt.end()) break;
    at = std::find(at + 1, prompt.end(), *opener);
    if (at != prompt.end()) turn = static_cast<int32_t>(at - prompt.begin());
  }
  return turns;
}

}  // namespace candor::text
