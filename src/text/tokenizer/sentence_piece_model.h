#pragma once
// tokenizer.ggml.model "llama": SentencePiece's BPE (Kudo and Richardson, "SentencePiece", EMNLP 2018). Spaces become
// U+2581, characters are merged by score, the highest first and of equals the leftmost; what is no token is written as
// bytes (<0xNN>). Immutable; methods may be called from any thread.
//
// Round trip: the bytes of encode(text, add_prefix) are the text, with the prefix space before it, for all text without
// U+2581, which SentencePiece cannot tell from a space. Control, byte and unused tokens never come from merges.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

class SentencePieceModel {
 public:
  static Expected<SentencePieceModel> from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary);

  // Does the first word of a text get a space before it?
  bool adds_prefix() const { return adds_prefix_; }
  void encode(std::string_view text, bool add_prefix, const Vocabulary& vocabulary, std::vector<TokenId>& out) const;
  // The bytes that the token stands for.
  const StringArena& bytes() const { return bytes_; }

 private:
  SentencePieceModel() = default;
  Expected<void> read_byte_tokens(const Vocabulary& vocabulary);
  void read_bytes(const Vocabulary& vocabulary);
  void append_bytes(std::string_view piece, std::vector<TokenId>& out) const;

  bool adds_prefix_ = true;
  bool doubles_prefix_ = true;  // false: a text that starts with a space gets no other before it
  bool has_byte_tokens_ = false;
  TokenId unknown_ = kNoToken;
  std::array<TokenId, 256> byte_tokens_{};
  StringArena bytes_;  // by id
};

// Spaces of a text as the pieces write them.
std::string escape_spaces(std::string_view text);
std::string unescape_spaces(std::string_view piece);

}  // namespace candor::text
