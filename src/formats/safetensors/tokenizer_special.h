#pragma once
// The special tokens of a checkpoint, its chat template and the tokens that end an answer: of tokenizer.json's
// post_processor, tokenizer_config.json and generation_config.json. tokenizer_config.json's add_bos_token and add_eos_token
// count in folders without a tokenizer.json alone (transformers 5.23); where one is there, the other is false if absent.

#include <cstddef>
#include <string>
#include <unordered_map>

#include "base/error.h"
#include "formats/meta_list.h"
#include "formats/safetensors/tokenizer_json.h"
#include "formats/safetensors/tokenizer_steps.h"

namespace candor::formats::safetensors {

// Ids by piece. n_vocab: rows of the embedding.
struct PieceIds {
  const std::unordered_map<std::string, size_t>& by_piece;
  size_t n_vocab = 0;
};
Result<void> read_special_tokens(const TokenizerFiles& files, const PieceIds& ids, MetaList& metadata);

// transformers 5.23 makes the rules of a LlamaTokenizer anew, whatever tokenizer.json says: no normaliser, and one mark at
// the start of the text, or with "legacy" before each piece of it, unless a space stands there ("add_prefix_space": false:
// none). Of the model types whose registered tokenizer is another it takes tokenizer.json as it is. Does the same.
void obey_class(const TokenizerFiles& files, CharacterRules& rules);

}  // namespace candor::formats::safetensors
