#pragma once
// Routes that show the tokenizer and the chat template at work: text and chats to tokens, tokens to text, chats to the
// prompt that the template makes of them. Called on workers.

#include "serve/core/api.h"
#include "serve/http/exchange.h"

namespace candor::serve::openai {

class TextRoutes {
 public:
  explicit TextRoutes(const Core& core) : core_(core) {}

  // {"content": "text"} or {"prompt": "text"} or {"messages": [...]}: {"tokens": [...]}, as vLLM and llama.cpp answer.
  void tokenize(http::Exchange& exchange) const;
  void detokenize(http::Exchange& exchange) const;
  void apply_template(http::Exchange& exchange) const;
  // What an evaluation needs of the tokenizer beside these.
  void tokenizer_info(http::Exchange& exchange) const;

 private:
  const Core& core_;
};

}  // namespace candor::serve::openai
