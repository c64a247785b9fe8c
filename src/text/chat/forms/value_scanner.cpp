#include "text/chat/forms/value_scanner.h"

#include "text/chat/call_json.h"

namespace candor::text {
namespace {

constexpr StringMarks kJsonStrings[] = {{.open = "\"", .close = "\""}};
constexpr StringMarks kPythonStrings[] = {{.open = "\"\"\"", .close = "\"\"\""},
                                          {.open = "'''", .close = "'''"},
                                          {.open = "\"", .close = "\""},
                                          {.open = "'", .close = "'"}};

// What may stand outside of strings and brackets.
bool may_stand_bare(char byte, const Notation& notation) {
  constexpr std::string_view kSigns = " \t\r\n,:+-._";
  constexpr std::string_view kSignsOfKeys = "$@/#*";
  const bool is_word = (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z');
  return is_word || kSigns.find(byte) != std::string_view::npos || (notation.is_python && byte == '=') ||
         (notation.has_bare_keys && kSignsOfKeys.find(byte) != std::string_view::npos) ||
         static_cast<unsigned char>(byte) >= 0x80;
}

// One line only, where a line break would have to be escaped.
bool is_one_line(const StringMarks& marks) {
  return marks.has_escapes && marks.open.size() == 1;
}

}  // namespace

const Notation kStrictJson{.strings = kJsonStrings};
const Notation kPythonLiteral{.strings = kPythonStrings, .is_python = true};

ValueScanner::State ValueScanner::scan(std::string_view text, const Notation& notation) {
  while (at_ < text.size()) {
    const Step step = string_ != nullptr ? pass_string(text) : pass_byte(text, notation);
    if (step == Step::kBroken) return State::kBroken;
    if (step == Step::kMore) return State::kMore;
    if (closers_.empty()) return State::kWhole;
  }
  return State::kMore;
}

ValueScanner::Step ValueScanner::pass_string(std::string_view text) {
  const std::string_view rest = text.substr(at_);
  if (rest.starts_with(string_->close)) {
    at_ += string_->close.size();
    string_ = nullptr;
    return Step::kGoOn;
  }
  if (string_->close.starts_with(rest)) return Step::kMore;
  if (string_->has_escapes && rest.front() == '\\') {
    if (rest.size() == 1) return Step::kMore;
    at_ += 2;
    return Step::kGoOn;
  }
  if (is_one_line(*string_) && rest.front() == '\n') return Step::kBroken;
  ++at_;
  return Step::kGoOn;
}

ValueScanner::Step ValueScanner::pass_byte(std::string_view text, const Notation& notation) {
  const std::string_view rest = text.substr(at_);
  for (const StringMarks& marks : notation.strings) {
    if (closers_.empty()) break;
    if (rest.starts_with(marks.open)) {
      string_ = &marks;
      at_ += marks.open.size();
      return Step::kGoOn;
    }
    if (marks.open.starts_with(rest)) return Step::kMore;
  }
  return pass_bracket(rest.front(), notation);
}

ValueScanner::Step ValueScanner::pass_bracket(char byte, const Notation& notation) {
  const bool opens = byte == '{' || byte == '[' || (notation.is_python && byte == '(');
  if (opens) {
    if (closers_.size() >= kMaxCallDepth) return Step::kBroken;
    closers_.push_back(byte == '{' ? '}' : byte == '[' ? ']' : ')');
  } else if (!closers_.empty() && byte == closers_.back()) {
    closers_.pop_back();
  } else if (closers_.empty() || !may_stand_bare(byte, notation)) {
    return Step::kBroken;
  }
  ++at_;
  return Step::kGoOn;
}

}  // namespace candor::text
