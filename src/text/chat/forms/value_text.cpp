#include "text/chat/forms/value_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "text/chat/call_json.h"
#include "text/chat/forms/blanks.h"

namespace candor::text {
namespace {

std::optional<uint32_t> read_hex(std::string_view digits, size_t n_digits) {
  if (digits.size() < n_digits) return std::nullopt;
  uint32_t value = 0;
  for (const char digit : digits.substr(0, n_digits)) {
    const char low = static_cast<char>(digit | 0x20);
    const bool is_decimal = digit >= '0' && digit <= '9';
    if (!is_decimal && (low < 'a' || low > 'f')) return std::nullopt;
    value = value * 16 + static_cast<uint32_t>(is_decimal ? digit - '0' : low - 'a' + 10);
  }
  return value;
}

constexpr std::string_view kEndsOfWords = " \t\r\n,:=(){}[]\"'<>";

class Translator {
 public:
  Translator(std::string_view text, const Notation& notation) : rest_(text), notation_(notation) {}

  std::optional<std::string> run() {
    while (!rest_.empty()) {
      if (!pass()) return std::nullopt;
    }
    return frames_.empty() && !has_comma_ ? std::optional(std::move(json_)) : std::nullopt;
  }

 private:
  bool pass() {
    const char byte = rest_.front();
    if (kBlankBytes.find(byte) != std::string_view::npos) return json_ += ' ', skip(1);
    const bool closes = byte == ')' || byte == ']' || byte == '}';
    if (has_comma_ && !(closes && notation_.is_python)) json_ += ',';
    has_comma_ = false;
    if (closes) return close(byte);
    for (const StringMarks& marks : notation_.strings) {
      if (rest_.starts_with(marks.open)) return pass_string(marks);
    }
    if (byte == '{' || byte == '[' || byte == '(') return open(byte);
    if (byte == ',') return has_comma_ = true, skip(1);
    if (byte == ':') return json_ += ':', skip(1);
    return pass_word();
  }

  bool skip(size_t n_bytes) {
    rest_.remove_prefix(n_bytes);
    return true;
  }

  bool open(char byte) {
    if (byte == '(' && !notation_.is_python) return false;
    frames_.push_back(byte);
    json_ += byte == '(' ? '[' : byte;
    return skip(1);
  }

  bool close(char byte) {
    if (frames_.empty()) return false;
    const char frame = frames_.back();
    frames_.pop_back();
    if (byte == ')') {
      if (frame != '(' && frame != kCall) return false;
      json_ += frame == kCall ? "}}" : "]";
    } else {
      if (frame != (byte == '}' ? '{' : '[')) return false;
      json_ += byte;
    }
    return skip(1);
  }

  bool pass_word() {
    const std::string_view word = rest_.substr(0, rest_.find_first_of(kEndsOfWords));
    if (word.empty()) return false;
    skip(word.size());
    const size_t n_blanks = std::min(rest_.find_first_not_of(kBlankBytes), rest_.size());
    const char next = n_blanks < rest_.size() ? rest_[n_blanks] : '\0';
    if (next == '(' && may_call()) {
      json_ += fmt::format("{{\"name\":{},\"arguments\":{{", quoted(word));
      frames_.push_back(kCall);
      return skip(n_blanks + 1);
    }
    if (next == '=' && !frames_.empty() && frames_.back() == kCall) {
      json_ += quoted(word) + ":";
      return skip(n_blanks + 1);
    }
    if (next == ':' && notation_.has_bare_keys) {
      json_ += quoted(word);
    } else {
      json_ += plain(word);
    }
    return true;
  }

  bool may_call() const {
    return notation_.is_python && (frames_.empty() || (frames_.size() == 1 && frames_.back() == '['));
  }

  std::string_view plain(std::string_view word) const {
    if (!notation_.is_python) return word;
    if (word == "True") return "true";
    if (word == "False") return "false";
    return word == "None" ? "null" : word;
  }

  static std::string quoted(std::string_view word) {
    std::string text = "\"";
    for (const char byte : word) add_byte(byte, text);
    return text + "\"";
  }

  static void add_byte(char byte, std::string& text) {
    if (byte == '"' || byte == '\\') {
      text += '\\';
      text += byte;
    } else if (static_cast<unsigned char>(byte) < 0x20) {
      text += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
    } else {
      text += byte;
    }
  }

  bool pass_string(const StringMarks& marks) {
    skip(marks.open.size());
    json_ += '"';
    while (!rest_.starts_with(marks.close)) {
      if (rest_.empty()) return false;
      if (marks.has_escapes && rest_.front() == '\\') {
        if (!pass_escape()) return false;
      } else {
        add_byte(rest_.front(), json_);
        skip(1);
      }
    }
    json_ += '"';
    return skip(marks.close.size());
  }

  bool pass_escape() {
    if (rest_.size() < 2) return false;
    const char kind = rest_[1];
    skip(2);
    if (kind == '\n') return true;
    if (kind == 'u' || kind == 'x' || kind == 'U') return pass_hex(kind == 'u' ? 4 : kind == 'x' ? 2 : 8);
    constexpr std::string_view kSame = "nrtbf\"\\/";
    if (kSame.find(kind) != std::string_view::npos) {
      json_ += '\\';
      json_ += kind;
    } else if (kind == '0') {
      json_ += "\\u0000";
    } else {
      if (kind != '\'') json_ += "\\\\";
      add_byte(kind, json_);
    }
    return true;
  }

  bool pass_hex(size_t n_digits) {
    const auto code = read_hex(rest_, n_digits);
    if (!code || *code > 0x10FFFF) return false;
    if (*code > 0xFFFF) {
      append_utf8(json_, *code);
    } else {
      json_ += fmt::format("\\u{:04x}", *code);
    }
    return skip(n_digits);
  }

  static constexpr char kCall = 'c';

  std::string_view rest_;
  const Notation& notation_;
  std::string json_;
  std::string frames_;  // the brackets that are open, and kCall
  bool has_comma_ = false;
};

}  // namespace

std::optional<nlohmann::ordered_json> read_value(std::string_view text, const Notation& notation) {
  if (&notation == &kStrictJson) return read_call_json(text);
  const auto json = Translator(text, notation).run();
  return json ? read_call_json(*json) : std::nullopt;
}

}  // namespace candor::text
