#pragma once
// What a tokenizer does to plain text before it cuts it. A model file lists the steps under
// "tokenizer.candor.normalizer", three strings each: the step and its two arguments ("" where it has none).
//   nfc, nfd, nfkc, nfkd    Unicode's normal forms, by the tables of Unicode 9 as in the `tokenizers` library
//   lowercase, nmt          nmt: SentencePiece's rules for controls and spaces
//   strip                   white space at the "left", the "right" or "both" ends
//   prepend                 what is put before a text that is not empty
//   replace                 what, and by what;  squeeze: each run of spaces longer than one, by what
//   charsmap                SentencePiece's compiled rules in base64
// Text that is no valid UTF-8 stays as it is. Immutable; any thread.

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
  static Expected<Normalizer> from_model_file(const formats::ModelFile& file);

  bool is_empty() const { return steps_.empty(); }
  std::string apply(std::string_view text) const;

 private:
  using Function = std::string (*)(std::string_view text, std::string_view first, std::string_view second);
  struct Step {
    Function function = nullptr;
    std::string first;
    std::string second;
    std::optional<Charsmap> charsmap;  // instead of the function
  };

  std::vector<Step> steps_;
};

}  // namespace candor::text
