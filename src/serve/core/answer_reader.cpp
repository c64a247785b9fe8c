#include "serve/core/answer_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace candor::serve {

std::vector<text::OutputPiece> AnswerReader::take(const TokenEvent& event) {
  std::vector<text::OutputPiece> pieces = parser_.push(event.text);
  const bool is_mark =
      !event.finish && event.token >= 0 && tools_ != text::ToolForm::kNone && engine_.token_bytes(event.token).empty();
  if (is_mark) std::ranges::move(parser_.push(engine_.piece(event.token)), std::back_inserter(pieces));
  if (event.finish) std::ranges::move(parser_.finish(), std::back_inserter(pieces));
  const auto is_reasoning = [](const text::OutputPiece& piece) {
    return piece.kind == text::OutputPiece::Kind::kReasoning;
  };
  n_reasoning_tokens_ += std::ranges::any_of(pieces, is_reasoning) ? 1 : 0;
  return pieces;
}

std::string AnswerReader::warning() const {
  if (parser_.n_unread() == 0) return {};
  return fmt::format("a call of a tool could not be read in the form {}, and is given as text",
                     text::to_string(tools_));
}

}  // namespace candor::serve
