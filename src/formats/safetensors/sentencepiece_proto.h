#pragma once
// Reads a SentencePiece model (tokenizer.model: a protobuf ModelProto, https://github.com/google/sentencepiece,
// sentencepiece_model.proto). Bounded by the file: nothing is allocated that its bytes do not hold. What the file asks for
// and text/tokenizer does not do (words, characters, spaces behind words, a denormaliser) is refused by name.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace candor::formats::safetensors {

struct SentencePieceFile {
  struct Piece {
    std::string text;
    float score = 0;
    int64_t type = 1;  // as GGUF numbers them: normal, unknown, control, user-defined, unused, byte
  };
  std::vector<Piece> pieces;  // by id
  bool is_unigram = true;     // else BPE
  int64_t unk_id = 0;         // these: -1 where there is none
  int64_t bos_id = 1;
  int64_t eos_id = 2;
  int64_t pad_id = -1;
  std::string charsmap;  // compiled rules; empty: none
  bool adds_space = true;
  bool squeezes_spaces = true;
};

// name: of the folder, for errors.
Result<SentencePieceFile> read_sentence_piece(std::string_view bytes, std::string_view name);

}  // namespace candor::formats::safetensors
