#pragma once
// SentencePiece's compiled normalisation rules ("precompiled_charsmap"): a 32-bit little-endian size, a double-array
// trie of that many bytes in darts-clone's layout (keys are UTF-8, values are offsets), and behind it the replacements,
// each ended by a zero byte. Applied as the `tokenizers` library does: a grapheme cluster of fewer than 6 bytes as a
// whole, else each of its code points; of several keys that begin there the shortest counts, and replaces all of it.
// Or as SentencePiece itself does: at each place the longest key, wherever clusters end.
// Any bytes make a map that is safe to apply. Immutable; any thread.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor::text {

class Charsmap {
 public:
  // Nothing where the bytes are no map, or the text is no base64.
  static std::optional<Charsmap> from_base64(std::string_view text);

  // A result longer than max_bytes need not be complete. REQUIRES: valid UTF-8.
  std::string apply(std::string_view text, size_t max_bytes) const;
  std::string apply_longest(std::string_view text, size_t max_bytes) const;

 private:
  struct Match {
    size_t length = 0;  // of the key
    std::string_view text;
  };
  // Of the keys that the text begins with.
  std::optional<Match> find(std::string_view text, bool longest) const;
  std::optional<std::string_view> replacement(std::string_view key) const;
  void append(std::string_view cluster, size_t max_bytes, std::string& out) const;

  std::vector<uint32_t> trie_;
  std::string replacements_;
};

}  // namespace candor::text
