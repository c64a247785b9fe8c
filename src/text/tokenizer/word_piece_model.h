#pragma once
// tokenizer.ggml.model "bert", WordPiece (Schuster & Nakajima, 2012; Devlin et al., "BERT", 2019): text is cut at white
// space, which is dropped, and around each mark of punctuation; a word is its longest piece from the left, then the
// longest of the rest, and so on, or unknown as a whole. Pieces that begin a word begin with U+2581, as GGUF files
// write them. Immutable; methods may be called from any thread.

#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/missing_byte.h"
#include "text/tokenizer/piece_bytes.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

class WordPieceModel {
 public:
  static Result<WordPieceModel> from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary);

  Missing encode(std::string_view text, const Vocabulary& vocabulary, std::vector<TokenId>& out) const;
  // The bytes that the token stands for.
  const StringArena& bytes() const { return pieces_.bytes(); }

 private:
  explicit WordPieceModel(PieceBytes pieces) : pieces_(std::move(pieces)) {}
  void encode_word(std::string_view word, size_t n_characters, const Vocabulary& vocabulary,
                   std::vector<TokenId>& out) const;

  PieceBytes pieces_;
  TokenId unknown_ = kNoToken;
  size_t max_characters_ = 100;  // of a word that is not unknown
};

}  // namespace candor::text
