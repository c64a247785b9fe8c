#pragma once
// Cuts a text at the tokens that it spells out ("<|im_start|>"): user-defined tokens always, control tokens where the
// caller asks for them. The leftmost match wins, then the longest. Time: linear in the text, whatever the tokens.
// Immutable once linked.

#include <cstddef>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/string_automaton.h"
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
  // Once, behind the last token.
  void link();
  std::vector<Fragment> split(std::string_view text, const EncodeOptions& options) const;

 private:
  struct Entry {
    TokenId token = kNoToken;
    Rules rules;
  };
  // Tokens of one kind, backwards: read from the end of a text, what is found at an offset begins there.
  struct Kind {
    StringAutomaton automaton;
    std::vector<Entry> entries;  // by state
    size_t longest = 0;          // bytes
  };
  struct Match {
    size_t length = 0;  // 0: none
    const Entry* entry = nullptr;
  };
  class Window;

  Kind users_;
  Kind controls_;
};

}  // namespace candor::text
