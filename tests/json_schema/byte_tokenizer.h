#pragma once
// A vocabulary of the 256 bytes and one end token, for tests of constraints.

#include <string>
#include <vector>

#include "text/tokenizer/tokenizer.h"

namespace candor::constrain {

class ByteTokenizer final : public text::Tokenizer {
 public:
  static constexpr TokenId kEnd = 256;

  ByteTokenizer() {
    for (int i = 0; i < 256; ++i) bytes_.push_back(std::string(1, static_cast<char>(i)));
  }
  Result<std::vector<TokenId>> encode(std::string_view text, const text::EncodeOptions&) const override {
    std::vector<TokenId> tokens;
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  std::string_view bytes_of(TokenId id) const override { return id == kEnd ? "" : piece(id); }
  std::string_view piece(TokenId id) const override {
    return id == kEnd ? std::string_view("<end>") : std::string_view(bytes_[static_cast<size_t>(id)]);
  }
  text::TokenKind kind(TokenId id) const override {
    return id == kEnd ? text::TokenKind::kControl : text::TokenKind::kNormal;
  }
  int32_t n_vocab() const override { return kEnd + 1; }
  const text::SpecialTokens& special() const override { return special_; }
  std::span<const TokenId> end_tokens() const override { return ends_; }
  std::optional<TokenId> find(std::string_view) const override { return std::nullopt; }
  std::string description() const override { return "bytes"; }
  bool strips_leading_space() const override { return false; }

 private:
  std::vector<std::string> bytes_;
  std::vector<TokenId> ends_ = {kEnd};
  text::SpecialTokens special_;
};

}  // namespace candor::constrain
