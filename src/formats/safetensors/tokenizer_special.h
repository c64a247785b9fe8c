#pragma once
// The special tokens of a checkpoint, its chat template and the tokens that end an answer: of tokenizer.json's
// post_processor, tokenizer_config.json and generation_config.json. Where tokenizer_config.json has add_bos_token or
// add_eos_token, both stand above the post_processor, an absent one being false (transformers 5.23).

#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "formats/meta_list.h"
#include "formats/safetensors/tokenizer_json.h"

namespace candor::formats::safetensors {

// Ids by piece. n_vocab: rows of the embedding.
struct PieceIds {
  const std::unordered_map<std::string, size_t>& by_piece;
  size_t n_vocab = 0;
};
Result<void> read_special_tokens(const TokenizerFiles& files, const PieceIds& ids, MetaList& metadata);

}  // namespace candor::formats::safetensors
