#include "text/tokenizer/charsmap.h"

#include <openssl/evp.h>
#include <utf8proc.h>

#include <cstring>

#include "base/utf8.h"

namespace candor::text {
namespace {

constexpr size_t kMaxBase64 = size_t{1} << 30;
constexpr size_t kShortCluster = 6;  // bytes; shorter ones are looked up whole

// Padding may be missing.
std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  const size_t n_padding = (4 - text.size() % 4) % 4;
  // libcrypto passes over these at the ends, and takes padding anywhere.
  constexpr std::string_view kNoDigits = "= \t\r\n\v\f";
  if (n_padding == 3 || text.size() > kMaxBase64 || text.find_first_of(kNoDigits) != std::string_view::npos) {
    return std::nullopt;
  }
  const std::string padded = std::string(text) + std::string(n_padding, '=');
  std::string bytes(padded.size() / 4 * 3, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                reinterpret_cast<const unsigned char*>(padded.data()), static_cast<int>(padded.size()));
  if (n < 0) return std::nullopt;
  bytes.resize(bytes.size() - n_padding);
  return bytes;
}

// The fields of a unit of the trie.
uint32_t offset_of(uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}
bool has_value(uint32_t unit) {
  return (unit >> 8 & 1u) != 0;
}
uint32_t label_of(uint32_t unit) {
  return unit & (1u << 31 | 0xFFu);
}
uint32_t value_of(uint32_t unit) {
  return unit & ~(1u << 31);
}

}  // namespace

std::optional<Charsmap> Charsmap::from_base64(std::string_view text) {
  const std::optional<std::string> bytes = decode_base64(text);
  uint32_t n_bytes = 0;
  if (!bytes || bytes->size() < sizeof(n_bytes)) return std::nullopt;
  std::memcpy(&n_bytes, bytes->data(), sizeof(n_bytes));
  if (n_bytes == 0 || n_bytes % sizeof(uint32_t) != 0 || n_bytes > bytes->size() - sizeof(n_bytes)) return std::nullopt;
  Charsmap map;
  map.trie_.resize(n_bytes / sizeof(uint32_t));
  std::memcpy(map.trie_.data(), bytes->data() + sizeof(n_bytes), n_bytes);
  map.replacements_ = bytes->substr(sizeof(n_bytes) + n_bytes);
  return map;
}

std::optional<Charsmap::Match> Charsmap::find(std::string_view text, bool longest) const {
  std::optional<Match> found;
  uint32_t at = offset_of(trie_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t byte = static_cast<uint8_t>(text[i]);
    at ^= byte;
    if (byte == 0 || at >= trie_.size() || label_of(trie_[at]) != byte) break;
    const uint32_t unit = trie_[at];
    at ^= offset_of(unit);
    if (!has_value(unit)) continue;
    const size_t begin = at < trie_.size() ? value_of(trie_[at]) : replacements_.size();
    if (begin >= replacements_.size()) break;
    const std::string_view rest = std::string_view(replacements_).substr(begin);
    found = Match{i + 1, rest.substr(0, rest.find('\0'))};
    if (!longest) break;
  }
  return found;
}

std::optional<std::string_view> Charsmap::replacement(std::string_view key) const {
  const std::optional<Match> found = find(key, false);
  return found ? std::optional(found->text) : std::nullopt;
}

std::string Charsmap::apply_longest(std::string_view text, size_t max_bytes) const {
  constexpr size_t kMaxKeyBytes = 256;  // a chain in a hostile trie may be as long as the text
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size() && out.size() <= max_bytes;) {
    const std::optional<Match> found = find(text.substr(at, kMaxKeyBytes), true);
    const size_t length = found ? found->length : decode_utf8(text, at).length;
    out += found ? found->text : text.substr(at, length);
    at += length;
  }
  return out;
}

void Charsmap::append(std::string_view cluster, size_t max_bytes, std::string& out) const {
  if (cluster.size() < kShortCluster) {
    if (const auto text = replacement(cluster)) {
      out += *text;
      return;
    }
  }
  for (size_t at = 0; at < cluster.size() && out.size() <= max_bytes;) {
    const std::string_view character = cluster.substr(at, decode_utf8(cluster, at).length);
    out += replacement(character).value_or(character);
    at += character.size();
  }
}

std::string Charsmap::apply(std::string_view text, size_t max_bytes) const {
  std::string out;
  out.reserve(text.size());
  utf8proc_int32_t state = 0;
  size_t begin = 0;
  uint32_t previous = 0;
  for (size_t at = 0; at < text.size() && out.size() <= max_bytes;) {
    const CodePoint point = decode_utf8(text, at);
    const bool breaks = at != 0 && utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous),
                                                                    static_cast<utf8proc_int32_t>(point.value), &state);
    if (breaks) {
      append(text.substr(begin, at - begin), max_bytes, out);
      begin = at;
    }
    previous = point.value;
    at += point.length;
  }
  if (out.size() <= max_bytes) append(text.substr(begin), max_bytes, out);
  return out;
}

}  // namespace candor::text
