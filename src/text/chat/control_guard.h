#pragma once
// Finds the places in a client's string where a vocabulary's control tokens begin, marks them, and takes the marks out
// of the rendered text again. Immutable after construction; methods may be called from any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

class ControlGuard {
 public:
  explicit ControlGuard(const Tokenizer& tokenizer);

  // The string with a mark behind the first character of every control token in it, and of every beginning of one that
  // the end of the string cuts off. A control token of one character gets a mark on both sides.
  std::string with_marks(std::string_view text, uint32_t mark) const;

 private:
  enum class Place : uint8_t { kNone, kBegins, kIsWhole };
  Place look(std::string_view text, size_t at) const;

  ByteTrie trie_;
  std::vector<bool> is_token_;  // by node
};

struct UnmarkedText {
  std::string text;
  std::vector<size_t> breaks;  // ascending offsets into `text` where marks stood
};

// Removes the mark wherever it stands, also as the JSON escape that a template's tojson may have made of it.
UnmarkedText without_marks(std::string_view text, uint32_t mark);

// A private-use character that none of the texts holds, escaped or not. 0 if they hold all of them.
uint32_t choose_mark(const std::vector<std::string_view>& texts);

}  // namespace candor::text
