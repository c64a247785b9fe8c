#pragma once
// What the pieces of a tokenizer over characters stand for, and what becomes of text that is no piece: byte tokens
// (<0xNN>, all 256 or none), or the unknown token. Immutable; any thread.

#include <array>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

class PieceBytes {
 public:
  static Expected<PieceBytes> read(const Vocabulary& vocabulary);

  // By id.
  const StringArena& bytes() const { return bytes_; }
  bool has_byte_tokens() const { return has_byte_tokens_; }
  // The tokens of text that is no piece.
  void append_unknown(std::string_view text, std::vector<TokenId>& out) const;

 private:
  Expected<void> read_byte_tokens(const Vocabulary& vocabulary);

  bool has_byte_tokens_ = false;
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> byte_tokens_{};
  StringArena bytes_;
};

}  // namespace candor::text
