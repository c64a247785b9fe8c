#pragma once
// Finds the control tokens of a vocabulary in the parts of a prompt that a client wrote, or that a client's text
// completes, so that they are tokenised as text. Immutable after construction; methods may be called from any thread.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

struct GuardedText {
  std::string text;
  std::vector<size_t> breaks;  // EncodeOptions::breaks
};

class ControlGuard {
 public:
  explicit ControlGuard(const Tokenizer& tokenizer);

  // In `marked`, two marks enclose each part that a client wrote (the last one may have no end). Returns the text
  // without the marks, and breaks such that no control token with a byte of a client in it is recognised; all others
  // are.
  GuardedText read(std::string_view marked, uint32_t mark) const;

 private:
  struct Range {
    size_t begin = 0;
    size_t end = 0;
  };
  void add_breaks(size_t at, const Range& client, GuardedText& result) const;

  ByteTrie trie_;
  std::vector<bool> is_token_;  // by node
  size_t longest_ = 0;          // bytes of a control token
};

// Without the character, wherever it stands, also as the JSON escape that a template's tojson may have made of it.
std::string without_mark(std::string_view text, uint32_t mark);

// A private-use character that none of the texts holds, escaped or not. 0 if they hold all of them.
uint32_t choose_mark(const std::vector<std::string_view>& texts);

}  // namespace candor::text
