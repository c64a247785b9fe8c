#pragma once
// What a tokenizer does to plain text before it cuts it. A model file lists the steps under
// "tokenizer.candor.normalizer", three strings each: the step and its two arguments ("" where it has none).
//   nfc, nfd, nfkc, nfkd    Unicode's normal forms, by the tables of Unicode 9 as in the `tokenizers` library
//   lowercase, nmt          nmt: SentencePiece's rules for controls and spaces
//   strip                   white space at the "left", the "right" or "both" ends; "both", "spaces": U+0020 alone
//   space_first             a space before a text that begins with none and is not empty
//   prepend                 what is put before a text that is not empty
//   replace                 what, and by what;  squeeze: each run of spaces longer than one, by what
//   charsmap                SentencePiece's compiled rules in base64; "longest": as SentencePiece applies them, else as
//                           the `tokenizers` library does
//   clean, part_ideographs, drop_accents   BERT's: controls go and white space becomes spaces; spaces around
//   ideographs;
//                           marks that take no space of their own go
// Text that is no valid UTF-8 stays as it is. What the steps make of a text is bounded, so that no file can make memory
// of a short one: kMaxGrowth times its bytes and kGrowthFloor more. Immutable; any thread.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "formats/model_file.h"
#include "text/tokenizer/charsmap.h"

namespace candor::text {

class Normalizer {
 public:
  static Result<Normalizer> from_model_file(const formats::ModelFile& file);
  // BERT's, for a file that lists no steps: "tokenizer.ggml.normalizer.lowercase" (true where absent) and
  // "...strip_accents" (as lowercase where absent).
  static Result<Normalizer> of_bert(const formats::ModelFile& file);

  // Bytes that may come of a text with all that stands between its special tokens.
  static constexpr size_t budget_of(std::string_view text) { return kMaxGrowth * text.size() + kGrowthFloor; }
  static constexpr size_t kMaxGrowth = 16;  // a compatible decomposition has 11 times the bytes at most
  static constexpr size_t kGrowthFloor = 65536;
  static constexpr size_t kMaxSteps = 64;
  static constexpr size_t kMaxArgumentBytes = 1024;  // not of a charsmap

  bool is_empty() const { return steps_.empty(); }
  // Takes the bytes of the result from the budget.
  Result<std::string> apply(std::string_view text, size_t& budget) const;

  // Of a step; max_bytes: a result that is longer need not be complete.
  struct Arguments {
    std::string_view first;
    std::string_view second;
    size_t max_bytes = 0;
  };

 private:
  using Function = std::string (*)(std::string_view text, const Arguments& arguments);
  struct Step {
    Function function = nullptr;
    std::string first;
    std::string second;
    std::optional<Charsmap> charsmap;  // instead of the function
  };

  std::vector<Step> steps_;
};

}  // namespace candor::text
