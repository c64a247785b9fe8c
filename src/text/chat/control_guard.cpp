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

void note_break(std::vector<size_t>& breaks, size_t at) {
  if (breaks.empty() || breaks.back() < at) breaks.push_back(at);
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
    longest_ = std::max(longest_, piece.size());
  }
}

// Of the control tokens that begin at `at`, those that reach into the range. It is the first one that ends behind `at`.
void ControlGuard::add_breaks(size_t at, const Range& client, GuardedText& result) const {
  const std::string_view text = result.text;
  const size_t first = decode_utf8(text, at).length;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (size_t end = at; end < text.size();) {
    node = trie_.child(node, text[end]);
    if (node == ByteTrie::kNone) return;
    ++end;
    if (!is_token_[static_cast<size_t>(node)] || end <= client.begin) continue;
    if (at < client.begin) return note_break(result.breaks, client.begin);
    if (end - at <= first) note_break(result.breaks, at);
    return note_break(result.breaks, at + first);
  }
}

GuardedText ControlGuard::read(std::string_view marked, uint32_t mark) const {
  std::string sign;
  append_utf8(sign, mark);
  GuardedText result;
  std::vector<Range> ranges;
  bool is_client = false;
  for (size_t at = 0; at < marked.size(); is_client = !is_client) {
    const size_t end = std::min(marked.find(sign, at), marked.size());
    const size_t begin = result.text.size();
    result.text += marked.substr(at, end - at);
    if (is_client && end > at) ranges.push_back({begin, result.text.size()});
    at = end + (end < marked.size() ? sign.size() : 0);
  }
  size_t from = 0;
  for (const Range& range : ranges) {
    from = std::max(from, range.begin - std::min(range.begin, longest_));
    for (; from < range.end; ++from) add_breaks(from, range, result);
  }
  return result;
}

std::string without_mark(std::string_view text, uint32_t mark) {
  std::string plain;
  append_utf8(plain, mark);
  const std::string escape = escape_of(mark);
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const bool is_plain = text.substr(at, plain.size()) == plain;
    const bool is_escape = !is_plain && text[at] == '\\' && is_escape_of(text, at, escape);
    if (!is_plain && !is_escape) result += text[at];
    at += is_plain ? plain.size() : is_escape ? escape.size() : 1;
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
