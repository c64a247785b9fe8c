#pragma once
// Which tokens open, close and end a text: read from the tokenizer.ggml.*_token_id and add_*_token keys, with the
// defaults of the vocabulary's kind where a key is absent. Ids of 2^32 - 1 (and -1) mean "none".

#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {

struct SpecialSet {
  SpecialTokens tokens;
  PairMarks pair = {};
  // Ascending.
  std::vector<TokenId> end_tokens = {};
  std::vector<TokenId> strips_left = {};  // take the white space before them with them
  std::vector<TokenId> strips_right = {};
};

// `defaults`: ids and rules that hold where the file has no key; ids must lie in the vocabulary or be kNoToken.
Result<SpecialSet> read_special_tokens(const formats::ModelFile& file, const Vocabulary& vocabulary,
                                       const SpecialTokens& defaults);

}  // namespace candor::text
