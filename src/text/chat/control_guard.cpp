#include "text/chat/control_guard.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace candor::text {
namespace {

// The Basic Multilingual Plane's private-use area: one JSON escape each.
constexpr uint32_t kFirstMark = 0xE000;
constexpr uint32_t kLastMark = 0xF8FF;

std::string escape_of(uint32_t mark) {
  return fmt::format("\\u{:04x}", mark);
}

bool is_escape_of(std::string_view text, size_t at, std::string_view escape) {
  if (text.size() - at < escape.size()) return false;
  return std::equal(escape.begin(), escape.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char a, char b) { return a == (b >= 'A' && b <= 'F' ? static_cast<char>(b - 'A' + 'a') : b); });
}

// Sets the flags of the private-use characters that the text holds, escaped or not.
void note_marks(std::string_view text, std::vector<bool>& used) {
  const auto note = [&used](uint32_t c) {
    if (c >= kFirstMark && c <= kLastMark) used[c - kFirstMark] = true;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    const uint8_t byte = static_cast<uint8_t>(text[at]);
    if (byte == 0xEE || byte == 0xEF) note(decode_utf8(text, at).value);
    if (byte != '\\' || text.substr(at, 2) != "\\u" || text.size() - at < 6) continue;
    uint32_t value = 0;
    for (const char c : text.substr(at + 2, 4)) {
      const uint32_t digit = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                             : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a') + 10
                             : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A') + 10
                                                    : 0x10000;
      value = std::min<uint32_t>(value * 16 + digit, 0x10000);
    }
    note(value);
  }
}

}  // namespace

ControlGuard::ControlGuard(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.n_vocab(); ++id) {
    const TokenKind kind = tokenizer.kind(id);
    const std::string_view piece = tokenizer.piece(id);
    if ((kind != TokenKind::kControl && kind != TokenKind::kUnknown) || piece.empty()) continue;
    const size_t node = static_cast<size_t>(trie_.insert(piece));
    is_token_.resize(static_cast<size_t>(trie_.n_nodes()), false);
    is_token_[node] = true;
  }
}

ControlGuard::Place ControlGuard::look(std::string_view text, size_t at) const {
  const size_t first = decode_utf8(text, at).length;
  Place place = Place::kNone;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (size_t end = at; end < text.size();) {
    node = trie_.child(node, text[end]);
    if (node == ByteTrie::kNone) return place;
    ++end;
    if (!is_token_[static_cast<size_t>(node)]) continue;
    if (end - at <= first) return Place::kIsWhole;
    place = Place::kBegins;
  }
  return Place::kBegins;  // the text ends inside a control token, or with one
}

std::string ControlGuard::with_marks(std::string_view text, uint32_t mark) const {
  std::string marked;
  for (size_t at = 0; at < text.size();) {
    const Place place = look(text, at);
    const size_t n_bytes = decode_utf8(text, at).length;
    if (place == Place::kIsWhole) append_utf8(marked, mark);
    marked += text.substr(at, n_bytes);
    if (place != Place::kNone) append_utf8(marked, mark);
    at += n_bytes;
  }
  return marked;
}

UnmarkedText without_marks(std::string_view text, uint32_t mark) {
  std::string plain;
  append_utf8(plain, mark);
  const std::string escape = escape_of(mark);
  UnmarkedText result;
  for (size_t at = 0; at < text.size();) {
    const bool is_plain = text.substr(at, plain.size()) == plain;
    if (!is_plain && !(text[at] == '\\' && is_escape_of(text, at, escape))) {
      result.text += text[at++];
      continue;
    }
    at += is_plain ? plain.size() : escape.size();
    if (result.breaks.empty() || result.breaks.back() != result.text.size())
      result.breaks.push_back(result.text.size());
  }
  return result;
}

uint32_t choose_mark(const std::vector<std::string_view>& texts) {
  std::vector<bool> used(kLastMark - kFirstMark + 1, false);
  for (const std::string_view text : texts) note_marks(text, used);
  const auto free = std::find(used.rbegin(), used.rend(), false);
  return free == used.rend() ? 0 : kLastMark - static_cast<uint32_t>(free - used.rbegin());
}

}  // namespace candor::text
