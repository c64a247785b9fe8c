#pragma once
// tokenizer.ggml.model "t5": SentencePiece's unigram model (Kudo, "Subword regularization", ACL 2018). A word becomes
// the pieces whose scores (log-probabilities) have the greatest sum, found by Viterbi's algorithm; a character that no
// piece covers costs 10 more than the worst piece, and neighbours of that kind are one unknown. Scores are added in
// double, as the `tokenizers` library does. Time: the text times the pieces that end at one place, which are at most
// kMaxNested. Immutable; any thread.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/string_automaton.h"
#include "text/tokenizer/missing_byte.h"
#include "text/tokenizer/piece_bytes.h"
#include "text/tokenizer/space_rules.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

class UnigramModel {
 public:
  static Result<UnigramModel> from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary);

  const SpaceRules& spaces() const { return spaces_; }
  const PieceBytes& pieces() const { return pieces_; }
  Missing encode(std::string_view text, FragmentPlace place, std::vector<TokenId>& out) const;
  // The bytes that the token stands for.
  const StringArena& bytes() const { return pieces_.bytes(); }

 private:
  // The best way to the end of some prefix of a word: its last piece.
  struct Step {
    double score = 0.0;
    size_t begin = SIZE_MAX;
    TokenId token = kNoToken;  // kNoToken: no piece
  };

  UnigramModel(SpaceRules spaces, PieceBytes pieces) : spaces_(spaces), pieces_(std::move(pieces)) {}
  Result<void> add_pieces(const Vocabulary& vocabulary, const std::vector<double>& scores);
  Result<void> check_nesting(const Vocabulary& vocabulary) const;
  std::vector<Step> best_steps(std::string_view word) const;
  Missing encode_word(std::string_view word, std::vector<TokenId>& out) const;

  SpaceRules spaces_;
  PieceBytes pieces_;
  StringAutomaton pieces_in_text_;
  std::vector<TokenId> tokens_;  // by state
  std::vector<double> scores_;   // by id
  double unknown_score_ = 0.0;
};

}  // namespace candor::text
