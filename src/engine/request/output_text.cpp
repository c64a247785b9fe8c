#include "engine/request/output_text.h"

#include <optional>
#include <utility>

namespace candor::engine {

ReasoningTokens reasoning_tokens(const text::Tokenizer& tokenizer) {
  return {tokenizer.find("<think>").value_or(kNoToken), tokenizer.find("</think>").value_or(kNoToken)};
}

OutputText::OutputText(const text::Tokenizer& tokenizer, const OutputSpec& spec)
    : scope_(spec.scope),
      marks_(reasoning_tokens(tokenizer)),
      fresh_(spec.scope == StopScope::kBoth ? nullptr : std::make_shared<const text::StopStrings>(spec.stops)),
      detokenizer_(tokenizer, spec.at_text_start),
      stops_(spec.stops),
      is_reasoning_(spec.opens_in_reasoning),
      may_open_(spec.may_open_reasoning) {}

text::StopResult OutputText::push(TokenId token) {
  const bool was_in_scope = is_in_scope();
  std::string text = detokenizer_.push(token);
  may_open_ = false;
  if (token != kNoToken && token == marks_.open) is_reasoning_ = true;
  if (token != kNoToken && token == marks_.close) is_reasoning_ = false;
  if (is_in_scope() != was_in_scope) return cross_border(text);
  return was_in_scope ? stops_.push(text) : text::StopResult{std::move(text), std::nullopt};
}

// No stop string reaches across a border; the mark itself belongs to neither side.
text::StopResult OutputText::cross_border(std::string_view text) {
  text::StopResult result{stops_.finish(), stops_.hit()};
  if (result.hit) return result;
  result.text += text;
  stops_ = *fresh_;
  return result;
}

std::string OutputText::finish() {
  std::string rest = detokenizer_.finish();
  if (!is_in_scope()) return rest;
  text::StopResult last = stops_.push(rest);
  if (!last.hit) last.text += stops_.finish();
  return std::move(last.text);
}

}  // namespace candor::engine
