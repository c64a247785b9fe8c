#pragma once
// The text of one output as it grows: tokens in, text that may be shown out. Half code points and what could be the
// beginning of a stop string are held back. Knows whether the text is inside a reasoning section, and finds stop
// strings in their scope only. Copied where an output forks; engine thread only.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "candor/request.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// The tokens around reasoning; kNoToken where the vocabulary has none.
struct ReasoningTokens {
  TokenId open = kNoToken;
  TokenId close = kNoToken;

  bool exist() const { return open != kNoToken && close != kNoToken; }
};

// "<think>" and "</think>", each a token of its own.
ReasoningTokens reasoning_tokens(const text::Tokenizer& tokenizer);

struct OutputSpec {
  bool at_text_start = false;
  std::vector<std::string> stops{};
  StopScope scope = StopScope::kBoth;
  bool opens_in_reasoning = false;
  bool may_open_reasoning = false;  // by the first token, before a constraint begins
};

class OutputText {
 public:
  // The tokenizer is borrowed.
  OutputText(const text::Tokenizer& tokenizer, const OutputSpec& spec);

  // Text up to a stop string, and which one it was.
  text::StopResult push(TokenId token);
  // What was held back. Nothing may follow, and nothing comes after a stop string.
  std::string finish();

  bool is_reasoning() const { return is_reasoning_; }
  // The token that may open reasoning here and now; kNoToken where none may.
  TokenId opening() const { return may_open_ ? marks_.open : kNoToken; }
  // Do stop strings and stop ids count for the next token?
  bool is_in_scope() const { return scope_ == StopScope::kBoth || is_reasoning_ == (scope_ == StopScope::kReasoning); }

 private:
  text::StopResult cross_border(std::string_view text);

  // Constant after construction.
  StopScope scope_;
  ReasoningTokens marks_;
  std::shared_ptr<const text::StopStrings> fresh_;  // nullptr where there is no border to cross

  text::Detokenizer detokenizer_;
  text::StopStrings stops_;
  bool is_reasoning_;
  bool may_open_;  // false from the first token on
};

}  // namespace candor::engine
