#pragma once
// Translates tokenizer.json (the `tokenizers` library) to the metadata that GGUF has for vocabularies. What the library
// can express and these keys cannot is refused by name, never approximated. Supported: BPE over bytes, BPE over
// characters with byte fallback as SentencePiece models are published, and Unigram.
//
// Keys: tokenizer.ggml.model, pre, tokens, token_type, merges, scores and the special ids; and, for what GGUF has no
// key for, tokenizer.candor.*: normalizer, space_prefix, split_at_marks, split_at_white_space, strip_space, lstrip_ids,
// rstrip_ids, end_token_ids, unknown_is_text, unknown_text, unknown_byte_id, fuse_unknown, splits, whole_piece_first, ranks_are_ids.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/meta_list.h"

namespace candor::formats::safetensors {

struct SentencePieceFile;

// The tokenizer's files of a checkpoint; nullptr where one is absent. name: of the checkpoint's folder, for errors.
struct TokenizerFiles {
  std::string_view name;
  std::string_view vocabulary = "tokenizer.json";  // the file that `tokenizer` comes from, for errors
  const nlohmann::json* tokenizer = nullptr;   // tokenizer.json, or what other_vocabularies.h makes
  const nlohmann::json* config = nullptr;      // tokenizer_config.json: chat template, beginning and end tokens
  const nlohmann::json* generation = nullptr;  // generation_config.json: the tokens that end an answer
  std::string_view model_type = {};            // of config.json
  const SentencePieceFile* pieces = nullptr;   // tokenizer.model; `tokenizer` then holds "added_tokens" alone
  bool ranks_are_ids = false;                  // of merges: see text/tokenizer/byte_pair_model.h
};

// n_vocab: rows of the embedding; ids without a token become unused ones.
Result<void> read_tokenizer(const TokenizerFiles& files, int64_t n_vocab, MetaList& metadata);

}  // namespace candor::formats::safetensors
