#pragma once
// How a vocabulary cuts text into words before byte pair encoding: data that a linear scanner reads. The vocabularies
// define their rules as regular expressions; here each alternative is a Pattern, an alternation is a Stage (the first
// pattern that matches wins), and stages follow one another, each cutting the pieces that the one before left. What no
// pattern of a stage matches is a piece too. A pattern sees nothing outside its piece.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/char_class.h"

namespace candor::text {

inline constexpr size_t kUnbounded = std::numeric_limits<size_t>::max();

enum class PatternKind : uint8_t {
  kRun,               // prefix? body{min,max} suffix*
  kContraction,       // 's 't 're 've 'm 'll 'd
  kLineEnds,          // \s*[\r\n]+
  kSpaceBeforeSpace,  // \s+(?!\S)
  kSpaceAtEnd,        // \s+$
  kCasedWord,         // prefix? upper* lower+ or prefix? upper+ lower*, then a contraction perhaps
  kDigitGroup,        // \d{1,3}(?=(\d{3})*\b): of a run, threes counted from its end
};

struct Pattern {
  PatternKind kind = PatternKind::kRun;
  CharClass body = {};
  CharClass prefix = {};
  CharClass suffix = {};
  size_t min = 1;
  size_t max = kUnbounded;
  bool prefix_required = false;
  bool any_case = false;          // kContraction: capitals too
  bool with_contraction = false;  // kCasedWord

  constexpr Pattern after(CharClass may_precede) const {
    Pattern p = *this;
    p.prefix = may_precede;
    return p;
  }
  constexpr Pattern only_after(CharClass precedes) const {
    Pattern p = after(precedes);
    p.prefix_required = true;
    return p;
  }
  constexpr Pattern then(CharClass may_follow) const {
    Pattern p = *this;
    p.suffix = may_follow;
    return p;
  }
};

constexpr Pattern run(CharClass body, size_t min = 1, size_t max = kUnbounded) {
  return {.body = body, .min = min, .max = max};
}

using Stage = std::span<const Pattern>;

struct SplitRule {
  std::string_view name;  // the best known vocabulary that has it
  std::span<const Stage> stages;
  bool uses_scripts = false;  // of classify()
};

// What tokenizer.ggml.pre says.
struct PreTokenizer {
  std::string_view name;
  const SplitRule* rule;
  bool whole_piece_first = false;  // a word that is a token is that token, whatever the merges make of it
  bool adds_bos = false;           // where tokenizer.ggml.add_bos_token is absent
};

// Every known name, in alphabetical order.
std::span<const PreTokenizer> pre_tokenizers();
// nullptr for an unknown name.
const PreTokenizer* find_pre_tokenizer(std::string_view name);

// Lengths in bytes of the words of the text, in order; they add up to text.size().
std::vector<size_t> split_words(const SplitRule& rule, std::string_view text);

}  // namespace candor::text
