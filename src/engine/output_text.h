#pragma once
// The text of one output as it grows: tokens in, text that may be shown out. Half code points and what could be the
// beginning of a stop string are held back. One per request; engine thread only.

#include <optional>
#include <string>
#include <vector>

#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

class OutputText {
 public:
  OutputText(const text::Tokenizer& tokenizer, bool at_text_start, std::vector<std::string> stops)
      : detokenizer_(tokenizer, at_text_start), stops_(std::move(stops)) {}

  // Text up to a stop string, and which one it was.
  text::StopResult push(TokenId token) { return stops_.push(detokenizer_.push(token)); }
  // What was held back. Nothing may follow, and nothing comes after a stop string.
  std::string finish();

 private:
  text::Detokenizer detokenizer_;
  text::StopStrings stops_;
};

inline std::string OutputText::finish() {
  text::StopResult rest = stops_.push(detokenizer_.finish());
  if (!rest.hit) rest.text += stops_.finish();
  return std::move(rest.text);
}

}  // namespace candor::engine
