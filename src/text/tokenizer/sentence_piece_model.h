#pragma once
// tokenizer.ggml.model "llama": SentencePiece's BPE (Kudo and Richardson, "SentencePiece", EMNLP 2018). Spaces become
// U+2581, characters are merged by score, the highest first and of equals the leftmost; what is no token is written as
// bytes (<0xNN>). Immutable; methods may be called from any thread.
//
// Round trip: the bytes of encode(text) are the text, with the prefix space before it, for all text without
// U+2581, which SentencePiece cannot tell from a space. Control, byte and unused tokens never come from merges.

#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/missing_byte.h"
#include "text/tokenizer/piece_bytes.h"
#include "text/tokenizer/space_rules.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

class SentencePieceModel {
 public:
  static Result<SentencePieceModel> from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary);

  const SpaceRules& spaces() const { return spaces_; }
  const PieceBytes& pieces() const { return pieces_; }
  Missing encode(std::string_view text, FragmentPlace place, const Vocabulary& vocabulary,
                 std::vector<TokenId>& out) const;
  // The bytes that the token stands for.
  const StringArena& bytes() const { return pieces_.bytes(); }

 private:
  SentencePieceModel(SpaceRules spaces, PieceBytes pieces) : spaces_(spaces), pieces_(std::move(pieces)) {}

  SpaceRules spaces_;
  PieceBytes pieces_;
};

}  // namespace candor::text
