#pragma once
// How a reranker that is a decoder wants a query and a document: a text with {query} and {document} in it (GGUF's
// "tokenizer.chat_template.rerank"). Control tokens of the template are recognised, those that a client wrote stay
// text. Immutable; any thread.

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/chat/chat_template.h"
#include "text/chat/control_guard.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

class PairTemplate {
 public:
  // Nothing where the source lacks one of the two places.
  static std::optional<PairTemplate> make(std::string_view source, const Tokenizer& tokenizer);

  Result<RenderedPrompt> render(std::string_view query, std::string_view document) const;

 private:
  PairTemplate(std::string_view source, const Tokenizer& tokenizer) : source_(source), guard_(tokenizer) {}

  std::string source_;
  ControlGuard guard_;
};

}  // namespace candor::text
