#pragma once
// What the pieces of a tokenizer over characters stand for, and what becomes of text that is no piece: byte tokens
// (<0xNN>) where all of its bytes have one, else the unknown token, and where there is none the text cannot be encoded.
// "tokenizer.candor.unknown_is_text": the unknown token is a piece like others, not one that a text names as it stands;
// "tokenizer.candor.fuse_unknown" (true where absent): neighbours of that kind are one unknown.
// "tokenizer.candor.unknown_text": what it stands for in generated text; where absent the sign that SentencePiece writes.
// Immutable; any thread.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/missing_byte.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

// A longer piece is refused: what text is compared with has a bound.
inline constexpr size_t kMaxPieceBytes = 1024;
Result<void> check_piece_lengths(const Vocabulary& vocabulary);

class PieceBytes {
 public:
  static Result<PieceBytes> read(const formats::ModelFile& file, const Vocabulary& vocabulary);

  // By id.
  const StringArena& bytes() const { return bytes_; }
  TokenId unknown() const { return unknown_; }
  bool unknown_is_text() const { return unknown_is_text_; }
  bool fuses_unknown() const { return fuses_unknown_; }
  // The tokens of text that is no piece.
  Missing append_unknown(std::string_view text, std::vector<TokenId>& out) const;

 private:
  Result<void> read_byte_tokens(const Vocabulary& vocabulary);

  TokenId unknown_ = kNoToken;
  bool unknown_is_text_ = false;
  bool fuses_unknown_ = true;
  std::array<TokenId, 256> byte_tokens_{};
  StringArena bytes_;
};

}  // namespace candor::text
