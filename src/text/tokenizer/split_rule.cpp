#include "text/tokenizer/split_rule.h"

#include <utility>

namespace candor::text {
namespace {

// One piece of the text; offsets count characters. A match is its end; `at` itself means none.
class Piece {
 public:
  explicit Piece(std::span<const Character> characters) : characters_(characters) {}

  size_t size() const { return characters_.size(); }

  size_t match(const Pattern& pattern, size_t at) {
    switch (pattern.kind) {
      case PatternKind::kRun:
        return match_run(pattern, at);
      case PatternKind::kContraction:
        return match_contraction(pattern.any_case, at);
      case PatternKind::kLineEnds:
        return match_line_ends(at);
      case PatternKind::kSpaceBeforeSpace:
        return match_space_before_space(at);
      case PatternKind::kSpaceAtEnd:
        return match_space_at_end(at);
      case PatternKind::kCasedWord:
        return match_cased_word(pattern, at);
      case PatternKind::kDigitGroup:
        return match_digit_group(at);
    }
    return at;
  }

 private:
  bool has(CharClass set, size_t at) const { return at < size() && set.has(characters_[at].flags); }

  size_t run_end(CharClass set, size_t at) const {
    while (has(set, at)) ++at;
    return at;
  }

  size_t match_run(const Pattern& pattern, size_t at) const {
    if (has(pattern.prefix, at)) {
      const size_t end = match_body(pattern, at + 1);
      if (end != at + 1) return end;
    }
    return pattern.prefix_required ? at : match_body(pattern, at);
  }

  size_t match_body(const Pattern& pattern, size_t at) const {
    size_t end = at;
    while (end - at < pattern.max && has(pattern.body, end)) ++end;
    return end - at < pattern.min ? at : run_end(pattern.suffix, end);
  }

  // The letter at an offset as a small one: U+017F folds to s too.
  char folded(size_t at, bool any_case) const {
    if (at >= size()) return 0;
    const uint32_t c = characters_[at].code_point;
    if (c >= 'a' && c <= 'z') return static_cast<char>(c);
    if (!any_case) return 0;
    if (c >= 'A' && c <= 'Z') return static_cast<char>(c + ('a' - 'A'));
    return c == 0x17F ? 's' : '\0';
  }

  size_t match_contraction(bool any_case, size_t at) const {
    if (at >= size() || characters_[at].code_point != '\'') return at;
    const char first = folded(at + 1, any_case);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
    const char second = folded(at + 2, any_case);
    const bool pair =
        (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
    return pair ? at + 3 : at;
  }

  size_t match_line_ends(size_t at) const {
    size_t end = run_end(in(kSpace), at);
    while (end > at && !has(in(kLineEnd), end - 1)) --end;
    return end;
  }

  size_t match_space_before_space(size_t at) const {
    const size_t end = run_end(in(kSpace), at);
    if (end == size() || end == at) return end;
    return end - 1;
  }

  // A run that does not reach the end is looked at once, from its first character.
  size_t match_space_at_end(size_t at) const {
    if (at > 0 && has(in(kSpace), at - 1)) return at;
    const size_t end = run_end(in(kSpace), at);
    return end == size() ? end : at;
  }

  size_t match_cased_word(const Pattern& pattern, size_t at) const {
    size_t end = match_after_prefix(pattern, at, &Piece::match_lower_ended);
    if (end == at) end = match_after_prefix(pattern, at, &Piece::match_upper_led);
    return end != at && pattern.with_contraction ? match_contraction(true, end) : end;
  }

  using WordForm = size_t (Piece::*)(const Pattern&, size_t) const;
  size_t match_after_prefix(const Pattern& pattern, size_t at, WordForm match_form) const {
    if (has(pattern.prefix, at)) {
      const size_t end = (this->*match_form)(pattern, at + 1);
      if (end != at + 1) return end;
    }
    return (this->*match_form)(pattern, at);
  }

  static CharClass upper_like(const Pattern& pattern) {
    return {kUpper | kTitle | kModifier | kOtherLetter | kMark, pattern.body.none};
  }
  static CharClass lower_like(const Pattern& pattern) {
    return {kLower | kModifier | kOtherLetter | kMark, pattern.body.none};
  }

  // upper* lower+. Letters without case belong to both: the run of the first gives back the last of them if it must.
  size_t match_lower_ended(const Pattern& pattern, size_t at) const {
    const CharClass lower = lower_like(pattern);
    const size_t upper_end = run_end(upper_like(pattern), at);
    const size_t end = run_end(lower, upper_end);
    if (end > upper_end) return end;
    for (size_t last = upper_end; last > at; --last) {
      if (has(lower, last - 1)) return last;
    }
    return at;
  }

  // upper+ lower*.
  size_t match_upper_led(const Pattern& pattern, size_t at) const {
    const size_t upper_end = run_end(upper_like(pattern), at);
    return upper_end == at ? at : run_end(lower_like(pattern), upper_end);
  }

  size_t match_digit_group(size_t at) {
    if (!has(in(kDecimal), at)) return at;
    if (at >= digits_end_) digits_end_ = run_end(in(kDecimal), at);
    if (has(in(kWordChar), digits_end_)) return at;
    const size_t first = (digits_end_ - at) % 3;
    return at + (first == 0 ? 3 : first);
  }

  std::span<const Character> characters_;
  size_t digits_end_ = 0;  // of the run that match_digit_group saw last
};

// Appends the ends of the words of one piece; `origin` is added to each.
void cut_piece(Stage stage, std::span<const Character> characters, size_t origin, std::vector<size_t>& ends) {
  Piece piece(characters);
  size_t begin = 0;
  for (size_t at = 0; at < piece.size();) {
    size_t end = at;
    for (const Pattern& pattern : stage) {
      end = piece.match(pattern, at);
      if (end != at) break;
    }
    if (end == at) {
      ++at;
      continue;
    }
    if (begin != at) ends.push_back(origin + at);
    ends.push_back(origin + end);
    at = begin = end;
  }
  if (begin != piece.size()) ends.push_back(origin + piece.size());
}

}  // namespace

std::vector<size_t> split_words(const SplitRule& rule, std::string_view text) {
  std::vector<Character> characters;
  classify(text, rule.uses_scripts, characters);
  std::vector<size_t> ends;
  if (!characters.empty()) ends.push_back(characters.size());
  for (const Stage stage : rule.stages) {
    std::vector<size_t> cut;
    size_t begin = 0;
    for (const size_t end : ends) {
      cut_piece(stage, std::span<const Character>(characters).subspan(begin, end - begin), begin, cut);
      begin = end;
    }
    ends = std::move(cut);
  }
  size_t at = 0;
  for (size_t& end : ends) {
    size_t n_bytes = 0;
    for (; at < end; ++at) n_bytes += characters[at].n_bytes;
    end = n_bytes;
  }
  return ends;
}

}  // namespace candor::text
