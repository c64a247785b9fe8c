#include "text/chat/forms/response_pattern.h"

#include <fmt/format.h>

#include <bitset>
#include <cstddef>
#include <optional>
#include <utility>

#include "base/utf8.h"

namespace candor::text {
namespace {

using ByteSet = std::bitset<256>;

ByteSet bytes_of_class(char letter) {
  ByteSet bytes;
  for (size_t i = 0; i < 256; ++i) {
    const bool is_digit = i >= '0' && i <= '9';
    const bool is_word = is_digit || (i >= 'a' && i <= 'z') || (i >= 'A' && i <= 'Z') || i == '_' || i >= 0x80;
    const bool is_blank = i == ' ' || (i >= '\t' && i <= '\r');
    bytes[i] = letter == 'd' ? is_digit : letter == 'w' ? is_word : letter == 's' ? is_blank : !is_blank;
  }
  return bytes;
}

std::optional<char> escaped_byte(char letter) {
  if (letter == 'n') return '\n';
  if (letter == 't') return '\t';
  if (letter == 'r') return '\r';
  const bool is_word = (letter >= '0' && letter <= '9') || ((letter | 0x20) >= 'a' && (letter | 0x20) <= 'z');
  return is_word ? std::nullopt : std::optional(letter);
}

bool is_class_letter(char letter) {
  return letter == 'd' || letter == 'w' || letter == 's' || letter == 'S';
}

class PatternParser {
 public:
  explicit PatternParser(std::string_view pattern) : pattern_(pattern), rest_(pattern) {}

  Result<std::vector<PatternItem>> run() {
    while (!rest_.empty()) {
      if (!pass_item()) {
        return fail(ErrorKind::kInvalidInput, fmt::format("the pattern \"{}\" cannot be followed from byte {} on",
                                                          clipped(pattern_), pattern_.size() - rest_.size()));
      }
    }
    return std::move(items_);
  }

 private:
  bool pass_item() {
    if (rest_.starts_with("(?P<")) return pass_named_group();
    if (rest_.starts_with("(?:")) return pass_optional_group();
    return pass_unit({});
  }

  // A byte, or a class with what says how often.
  bool pass_unit(const std::string& name) {
    const bool is_any = rest_.front() == '.';
    const std::string_view before = rest_;
    std::optional<ByteSet> bytes;
    std::string literal;
    if (!read_unit(bytes, literal)) return false;
    const char times = rest_.empty() ? '\0' : rest_.front();
    const bool repeats = times == '*' || times == '+';
    if (repeats || times == '?') rest_.remove_prefix(1);
    const bool is_lazy = repeats && rest_.starts_with('?');
    if (is_lazy) rest_.remove_prefix(1);
    if (!bytes) {
      if (repeats || !name.empty()) return false;
      add_literal(literal, times == '?');
      return true;
    }
    if (is_any) return is_lazy && add({.kind = PatternItem::Kind::kText, .name = name});
    if (before.starts_with("\\s")) return name.empty() && add({.kind = PatternItem::Kind::kBlanks});
    if (!repeats) return false;
    std::string ends;
    for (size_t i = 0; i < 256; ++i) {
      if (!bytes->test(i)) ends.push_back(static_cast<char>(i));
    }
    return add({.kind = PatternItem::Kind::kRun, .text = std::move(ends), .name = name});
  }

  bool read_unit(std::optional<ByteSet>& bytes, std::string& literal) {
    const char first = rest_.front();
    rest_.remove_prefix(1);
    if (first == '.') return bytes.emplace().set(), true;
    if (first == '[') return read_brackets(bytes.emplace());
    if (first == '\\') {
      if (rest_.empty()) return false;
      const char letter = rest_.front();
      rest_.remove_prefix(1);
      if (is_class_letter(letter)) return bytes = bytes_of_class(letter), true;
      const auto byte = escaped_byte(letter);
      if (byte) literal = *byte;
      return byte.has_value();
    }
    literal = first;
    constexpr std::string_view kOthers = "()|*+?^${}]";
    return kOthers.find(first) == std::string_view::npos || first == ']' || first == '}' || first == '{';
  }

  bool read_brackets(ByteSet& bytes) {
    const bool is_negated = rest_.starts_with('^');
    if (is_negated) rest_.remove_prefix(1);
    for (bool is_first = true; !rest_.empty() && (is_first || rest_.front() != ']'); is_first = false) {
      char byte = rest_.front();
      rest_.remove_prefix(1);
      if (byte == '\\') {
        if (rest_.empty()) return false;
        const char letter = rest_.front();
        rest_.remove_prefix(1);
        if (is_class_letter(letter)) {
          bytes |= bytes_of_class(letter);
          continue;
        }
        const auto escaped = escaped_byte(letter);
        if (!escaped) return false;
        byte = *escaped;
      }
      char last = byte;
      if (rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']') {
        last = rest_[1];
        rest_.remove_prefix(2);
      }
      for (int i = static_cast<unsigned char>(byte); i <= static_cast<unsigned char>(last); ++i) {
        bytes.set(static_cast<size_t>(i));
      }
    }
    if (rest_.empty()) return false;
    rest_.remove_prefix(1);
    if (is_negated) bytes = ~bytes;
    return true;
  }

  bool pass_named_group() {
    rest_.remove_prefix(4);
    const size_t end = rest_.find('>');
    if (end == std::string_view::npos) return false;
    const std::string name(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    if (name.empty() || rest_.empty() || !pass_unit(name) || !rest_.starts_with(')')) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool pass_optional_group() {
    rest_.remove_prefix(3);
    std::string text;
    while (!rest_.empty() && rest_.front() != ')') {
      std::optional<ByteSet> bytes;
      std::string literal;
      if (!read_unit(bytes, literal) || bytes) return false;
      text += literal;
    }
    if (!rest_.starts_with(")?") || text.empty()) return false;
    rest_.remove_prefix(2);
    return add({.kind = PatternItem::Kind::kOptional, .text = std::move(text)});
  }

  void add_literal(const std::string& text, bool is_optional) {
    if (!is_optional && !items_.empty() && items_.back().kind == PatternItem::Kind::kLiteral) {
      items_.back().text += text;
    } else {
      add({.kind = is_optional ? PatternItem::Kind::kOptional : PatternItem::Kind::kLiteral, .text = text});
    }
  }

  bool add(PatternItem item) {
    items_.push_back(std::move(item));
    return true;
  }

  std::string_view pattern_;
  std::string_view rest_;
  std::vector<PatternItem> items_;
};

}  // namespace

Result<std::vector<PatternItem>> parse_response_pattern(std::string_view pattern) {
  return PatternParser(pattern).run();
}

}  // namespace candor::text
