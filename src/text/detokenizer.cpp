#include "text/detokenizer.h"

#include <cstddef>
#include <string_view>

#include "base/utf8.h"

namespace candor::text {
namespace {

// A token's bytes, without the space that the tokenizer itself put before the first word of a text.
std::string_view bytes_without_prefix(const Tokenizer& tokenizer, TokenId token, bool& drop_space) {
  std::string_view bytes = tokenizer.bytes_of(token);
  if (!drop_space || bytes.empty()) return bytes;
  drop_space = false;
  if (tokenizer.kind(token) == TokenKind::kNormal && bytes.front() == ' ') bytes.remove_prefix(1);
  return bytes;
}

}  // namespace

Detokenizer::Detokenizer(const Tokenizer& tokenizer, bool at_text_start)
    : tokenizer_(tokenizer), drop_space_(at_text_start && tokenizer.strips_leading_space()) {}

std::string Detokenizer::push(TokenId token) {
  pending_ += bytes_without_prefix(tokenizer_, token, drop_space_);
  const size_t complete = complete_utf8_prefix(pending_);
  std::string text = to_valid_utf8(std::string_view(pending_).substr(0, complete));
  pending_.erase(0, complete);
  return text;
}

std::string Detokenizer::finish() {
  std::string text = to_valid_utf8(pending_);
  pending_.clear();
  return text;
}

std::string detokenize(const Tokenizer& tokenizer, std::span<const TokenId> tokens, bool at_text_start) {
  bool drop_space = at_text_start && tokenizer.strips_leading_space();
  std::string bytes;
  for (const TokenId token : tokens) bytes += bytes_without_prefix(tokenizer, token, drop_space);
  return bytes;
}

}  // namespace candor::text
