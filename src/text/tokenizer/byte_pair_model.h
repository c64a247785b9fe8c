#pragma once
// tokenizer.ggml.model "gpt2": text is cut into words by the vocabulary's rule, a word starts as its bytes, and merges
// join them. Any bytes that have tokens are encoded without loss, valid UTF-8 or not. Vocabularies learnt from text
// lack tokens for bytes that it did not hold: a text with one of those is not encoded, unless the file names a token
// that stands for such bytes ("tokenizer.candor.unknown_byte_id", one for each, or with "tokenizer.candor.fuse_unknown"
// one for all neighbours in a word). Immutable; methods may be called from any thread.
//
// "tokenizer.candor.splits" stands above the rule that "tokenizer.ggml.pre" names. "tokenizer.candor.whole_piece_first": a
// word that is a token is that token. "tokenizer.candor.ranks_are_ids": of two pairs, that is merged first which makes the
// token of the lower id, whatever the order of the merges (tiktoken).
//
// A byte of the alphabet whose only token is marked user-defined (DeepSeek Coder: the thirteen bytes that UTF-8 never
// uses) is that byte, not the Latin letter that its name looks like.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/general_split.h"
#include "text/tokenizer/merge_table.h"
#include "text/tokenizer/missing_byte.h"
#include "text/tokenizer/split_rule.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

class BytePairModel {
 public:
  static Result<BytePairModel> from_model_file(const formats::ModelFile& file, const Vocabulary& vocabulary);

  // Does the file's rule put the beginning token before each text, where it does not say so?
  bool adds_bos() const { return pre_ != nullptr && pre_->adds_bos; }
  // The rule that cuts text into words, for people.
  std::string rule_name() const;
  // Refuses a text that takes a general split more steps than are left (GeneralSplit::budget_of).
  Result<Missing> encode(std::string_view text, uint64_t& steps, std::vector<TokenId>& out) const;
  // The bytes that the token stands for.
  const StringArena& bytes() const { return bytes_; }
  // Does the text hold this token as it is written there?
  bool is_literal(TokenId id, const Vocabulary& vocabulary) const;

 private:
  explicit BytePairModel(size_t n_merges) : merges_(n_merges) {}
  Result<void> read_rule(const formats::ModelFile& file);
  Result<void> read_byte_tokens(const Vocabulary& vocabulary);
  Result<void> read_unknown(const formats::ModelFile& file, const Vocabulary& vocabulary);
  Missing append_bytes(std::string_view bytes, std::vector<TokenId>& word) const;
  Missing encode_word(std::string_view bytes, std::vector<TokenId>& word, std::vector<TokenId>& out) const;
  Result<void> read_merges(const std::vector<std::string_view>& merges, bool ranks_are_ids,
                           const Vocabulary& vocabulary);
  void read_bytes(const Vocabulary& vocabulary);

  const PreTokenizer* pre_ = nullptr;  // or general_
  std::optional<GeneralSplit> general_;
  bool whole_piece_first_ = false;
  std::array<TokenId, 256> byte_tokens_{};  // kNoToken: none
  TokenId unknown_ = kNoToken;              // stands for those bytes
  bool fuses_unknown_ = false;
  MergeTable merges_;
  StringArena bytes_;     // by id
  StringIndex words_{0};  // ordinary tokens by their bytes; filled where whole pieces come first
};

}  // namespace candor::text
