#pragma once
// Splits one answer of a chat, event by event, into reasoning, content and tool calls. Each API writes these pieces in
// its own format. One thread at a time.

#include <cstdint>
#include <string>
#include <vector>

#include "candor/engine.h"
#include "candor/event.h"
#include "text/chat/forms/tool_form.h"
#include "text/chat/output_parser.h"

namespace candor::serve {

class AnswerReader {
 public:
  // The engine is borrowed.
  AnswerReader(const Engine& engine, const text::OutputForm& form)
      : engine_(engine), tools_(form.tools), parser_(form) {}

  // What the event adds, and with its last event what was held back.
  std::vector<text::OutputPiece> take(const TokenEvent& event);
  // Tokens that added to the reasoning.
  int64_t n_reasoning_tokens() const { return n_reasoning_tokens_; }
  // Calls that could not be read, and were given as content.
  int32_t n_unread() const { return parser_.n_unread(); }
  // Where calls could not be read and were given as content: that, and in which form they were looked for. Else "".
  std::string warning() const;

 private:
  const Engine& engine_;
  const text::ToolForm tools_;
  text::OutputParser parser_;
  int64_t n_reasoning_tokens_ = 0;
};

}  // namespace candor::serve
