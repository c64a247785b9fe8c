#pragma once
// What the engine would read: texts and chats as tokens, tokens as text, and chats as their template writes them.
// Called on workers.

#include "candor/engine.h"
#include "serve/http/exchange.h"
#include "serve/http/fair_budget.h"
#include "serve/openai/request_terms.h"

namespace candor::openai {

class TextRoutes {
 public:
  // All are borrowed. bytes: what replies hold meanwhile is counted there.
  TextRoutes(const Engine& engine, const RequestTerms& terms, http::FairBudget& bytes)
      : engine_(engine), terms_(terms), bytes_(bytes) {}

  // {"content": "text"} or {"prompt": "text"} or {"messages": [...]}: {"tokens": [...]}, as vLLM and llama.cpp answer.
  void tokenize(http::Exchange& exchange) const;
  void detokenize(http::Exchange& exchange) const;
  void apply_template(http::Exchange& exchange) const;

 private:
  const Engine& engine_;
  const RequestTerms& terms_;
  http::FairBudget& bytes_;
};

// Replies of both kinds.
void answer(http::Exchange& exchange, const Json& json);
void answer(http::Exchange& exchange, const Error& error);

}  // namespace candor::openai
