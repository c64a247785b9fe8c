#pragma once
// How tokenizers over characters write spaces: as U+2581, with one before the first word where the rules say so, and
// words that merges or pieces never cross. From a model file: "tokenizer.ggml.add_space_prefix" (GGUF's rule: at the
// start and behind control tokens), or what tokenizer.json says beyond it: "tokenizer.candor.space_prefix" (each, each_once,
// first_once; of SentencePiece models before_tokens: GGUF's rule, before tokens of the user's as well),
// "...split_at_marks", "...split_at_white_space" (which is dropped), "...strip_space" (of generated text),
// "...literal_tokens".
// Immutable; any thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/missing_byte.h"

namespace candor::text {

inline constexpr std::string_view kSpaceMark = "\u2581";

// Where a piece of plain text stands.
struct FragmentPlace {
  bool opens_text = true;       // nothing stands before it
  bool follows_control = true;  // or nothing
};

class SpaceRules {
 public:
  static Result<SpaceRules> from_model_file(const formats::ModelFile& file);

  // Calls use(word) for each word of the text, spaces written as marks, until one is not encoded.
  using Use = std::function<Missing(std::string_view word)>;
  Missing for_each_word(std::string_view text, FragmentPlace place, const Use& use) const;
  // A space before the first word stands before a user's token too that begins the text.
  bool prefixes_tokens() const { return prefixes_tokens_; }
  // Generated text loses the space before its first word.
  bool strips_space() const { return strips_space_; }
  // Marks in a token of the user's stand for marks of the text; else for spaces, as in GGUF files.
  bool has_literal_tokens() const { return has_literal_tokens_; }

 private:
  enum class Prefix : uint8_t {
    kNever,
    kAfterControl,
    kEach,       // before every fragment
    kEachOnce,   // unless a space stands there already
    kFirstOnce,  // the same, at the start of the text alone
  };
  bool needs_prefix(std::string_view escaped, FragmentPlace place) const;
  Missing cut_at_marks(std::string_view text, FragmentPlace place, const Use& use) const;

  Prefix prefix_ = Prefix::kAfterControl;
  bool prefixes_tokens_ = false;
  bool splits_at_marks_ = false;
  bool splits_at_white_space_ = false;
  bool strips_space_ = true;
  bool has_literal_tokens_ = false;
};

// Spaces of a text as the pieces write them.
std::string escape_spaces(std::string_view text);
std::string unescape_spaces(std::string_view piece);

}  // namespace candor::text
