#pragma once
// Text to token ids and back. Built from a model file's metadata (GGUF's tokenizer.ggml.* keys); immutable after
// construction, all methods may be called from any thread. encode() is linear in the text (times log) and uses
// bounded stack, whatever the text.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "formats/model_file.h"

namespace candor::text {

enum class TokenKind : uint8_t { kNormal, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct EncodeOptions {
  bool add_special = true;     // beginning / end tokens, where the model's rules add them
  bool parse_special = false;  // control tokens written in the text become their ids; user text never does
  // Byte offsets into the text, ascending. A control token is not recognised across one of them, nor exactly between
  // two of them: what a user typed stays text in a prompt that is otherwise parsed. They change nothing else.
  std::span<const size_t> breaks = {};
};

// Special ids; kNoToken where the model has none.
struct SpecialTokens {
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;  // end of a turn
  TokenId unk = kNoToken;
  TokenId pad = kNoToken;
  bool add_bos = false;
  bool add_eos = false;
};

// Of two texts read together: "[CLS] first [SEP] second [SEP]" has one mark between them, "<s> first </s></s> second
// </s>" two; marks are eos. has_types: the second text's tokens, and the mark behind them, are of another type.
struct PairMarks {
  int32_t n_between = 1;
  bool has_types = true;
};
struct EncodedPair {
  std::vector<TokenId> tokens{};
  int32_t second_begin = 0;  // behind all marks between them
  bool has_types = true;
};

// Of one encode(): what a word is merged from is counted in 32 bits, and a normaliser may make 11 bytes of one.
inline constexpr size_t kMaxTextBytes = size_t{256} << 20;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // Refuses, by name: an unknown tokenizer model or pre-tokenizer, and vocabularies that contradict themselves.
  static Result<std::unique_ptr<Tokenizer>> from_model_file(const formats::ModelFile& file);

  // Refuses a text with a byte for which the vocabulary has no token (and no unknown token stands for it), one that
  // the vocabulary's normaliser makes many times as long (see Normalizer), and one above kMaxTextBytes.
  virtual Result<std::vector<TokenId>> encode(std::string_view text, const EncodeOptions& options) const = 0;
  // The bytes that a token stands for in generated text. Control tokens stand for nothing (use piece() to show them).
  // REQUIRES: 0 <= id < n_vocab().
  virtual std::string_view bytes_of(TokenId id) const = 0;
  // As the vocabulary writes it: "\u2581the", "\u0120the", "<|end|>".
  virtual std::string_view piece(TokenId id) const = 0;
  virtual TokenKind kind(TokenId id) const = 0;
  virtual int32_t n_vocab() const = 0;
  virtual const SpecialTokens& special() const = 0;
  // Refused where the vocabulary has no marks for it.
  virtual Result<EncodedPair> encode_pair(std::string_view, std::string_view) const {
    return fail(ErrorKind::kUnsupported, "this model's vocabulary has no mark between two texts");
  }
  // Every token that ends generation (eos, eot, and what the vocabulary marks as such), ascending.
  virtual std::span<const TokenId> end_tokens() const = 0;
  // The id whose vocabulary entry is exactly `piece`.
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;
  // "SentencePiece", "byte-level BPE (qwen2)": for people.
  virtual std::string description() const = 0;
  // SentencePiece drops the space that it put before the first word: true if the first decoded token may carry it.
  virtual bool strips_leading_space() const = 0;
};

}  // namespace candor::text
