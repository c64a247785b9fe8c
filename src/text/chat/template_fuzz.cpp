// Templates and messages through the bridge: no input ends the process, and what a message holds never becomes a
// control token where the template writes none. Input: template, NUL, content, NUL, extra JSON.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>

#include "fuzz/fuzz_budget.h"
#include "text/chat/chat_template.h"
#include "text/small_vocabularies.h"

namespace {

using candor::Message;
using candor::text::ChatTemplate;
using candor::text::Tokenizer;

const Tokenizer& small_tokenizer() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    auto made = Tokenizer::from_model_file(candor::testing::small_bpe("qwen2"));
    CANDOR_CHECK(made.has_value());
    return std::move(*made);
  }();
  return *tokenizer;
}

candor::sandbox::HelperPool& template_helpers() {
  static candor::sandbox::HelperPool pool;
  return pool;
}

std::string_view take_field(std::string_view& rest) {
  const size_t end = std::min(rest.find('\0'), rest.size());
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return field;
}

// A template that writes no control token of its own: none may come out, whatever the message holds.
void check_typed_text(const Message& message) {
  static const auto compiled = ChatTemplate::compile(
      "{{ messages[0].content }} {{ messages[0] | tojson }} {% for p in messages[0].content %}{{ p.text }}{% endfor %}",
      small_tokenizer(), template_helpers());
  CANDOR_CHECK(compiled.has_value());
  const auto prompt = compiled->render({.messages = {message}}, 0);
  if (!prompt) return;
  const auto encoded = candor::text::tokenize_prompt(small_tokenizer(), *prompt);
  for (const candor::TokenId id : *encoded) {
    CANDOR_CHECK(small_tokenizer().kind(id) != candor::text::TokenKind::kControl);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  small_tokenizer();
  const candor::testing::FuzzBudget budget(size);
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const std::string_view source = take_field(rest);
  const std::string content(take_field(rest));
  const Message message = {"user", content, std::string(rest)};
  check_typed_text(message);
  const auto compiled = ChatTemplate::compile(source, small_tokenizer(), template_helpers());
  if (!compiled) return 0;
  const auto prompt = compiled->render({.messages = {message}}, 0);
  if (prompt) CANDOR_CHECK(candor::text::tokenize_prompt(small_tokenizer(), *prompt).has_value());
  return 0;
}
