#include "text/chat/turns.h"

#include <algorithm>

namespace candor::text {

namespace {

// A beginning-of-text token comes once, and some templates open a system text by a token of its own.
constexpr int kMostCandidates = 4;

}  // namespace

Turns find_turns(std::span<const TokenId> prompt, const Tokenizer& tokenizer) {
  const auto opens = [&](TokenId id) {
    return tokenizer.kind(id) == TokenKind::kControl &&
           std::ranges::find(tokenizer.end_tokens(), id) == tokenizer.end_tokens().end();
  };
  auto opener = std::ranges::find_if(prompt, opens);
  for (int i = 0; i < kMostCandidates && opener != prompt.end(); ++i) {
    Turns turns{};
    auto at = opener;
    for (int32_t& turn : turns) {
      if (at != prompt.end()) at = std::find(at + 1, prompt.end(), *opener);
      if (at != prompt.end()) turn = static_cast<int32_t>(at - prompt.begin());
    }
    if (turns.front() > 0) return turns;
    opener = std::find_if(opener + 1, prompt.end(), opens);
  }
  return {};
}

}  // namespace candor::text
