#pragma once
// Cuts a text at the tokens that are written in it as they stand: user-defined tokens always, control tokens where the
// caller asks for them. The leftmost match wins, then the longest. Time: text bytes times the longest special piece.
// Immutable after construction.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/byte_trie.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

struct Fragment {
  std::string_view text;     // of the source; empty where a token was found
  TokenId token = kNoToken;  // kNoToken: plain text
};

class SpecialMatcher {
 public:
  // How a token that stands in a text is treated.
  struct Rules {
    bool is_control = false;
    bool strips_left = false;  // the white space before it, or behind it, goes with it
    bool strips_right = false;
  };

  // REQUIRES: !text.empty(). A text that was added before keeps its token.
  void add(std::string_view text, TokenId token, Rules rules);
  std::vector<Fragment> split(std::string_view text, const EncodeOptions& options) const;

 private:
  struct Entry {
    TokenId token = kNoToken;
    Rules rules;
  };
  struct Match {
    size_t length = 0;
    TokenId token = kNoToken;
    Rules rules = {};
  };
  // Where control tokens that begin at one offset must end; see EncodeOptions::breaks.
  struct Limit {
    bool control_allowed = false;
    bool begins_at_break = false;
    std::span<const size_t> breaks_after = {};  // those behind the offset
  };
  Match longest_at(std::string_view text, size_t at, const Limit& limit) const;
  static bool is_allowed(const Entry& entry, size_t end, const Limit& limit);

  ByteTrie trie_;
  std::vector<Entry> entries_;  // by node
};

}  // namespace candor::text
