#pragma once
// Token ids back to text, as a stream. Never emits half a code point: bytes that further tokens could complete are held
// back. Bytes that can never become valid UTF-8 come out as U+FFFD. One instance per output; not thread-safe.

#include <span>
#include <string>

#include "base/ids.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

class Detokenizer {
 public:
  // at_text_start: the first token opens the text, so a leading space that the tokenizer itself adds is dropped.
  Detokenizer(const Tokenizer& tokenizer, bool at_text_start);

  // Appends the token; returns the text that became complete (often all of it, sometimes "").
  std::string push(TokenId token);
  // What is held back, as valid UTF-8. Call once, at the end.
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  std::string pending_;
  bool drop_space_;
};

// The exact bytes of a whole sequence.
std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> tokens, bool at_text_start);

}  // namespace candor::text
