#pragma once
// All of some strings, searched for at once in time linear in the text (Aho and Corasick, CACM 1975). A state is the
// longest end of the text so far with which a string could begin; keys are the states where one is whole. Users keep
// their values in arrays indexed by state. Immutable once linked; const methods may be called from any thread.

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"

namespace candor::text {

class StringAutomaton {
 public:
  using State = ByteTrie::Node;
  static constexpr State kStart = ByteTrie::kRoot;
  static constexpr State kNone = ByteTrie::kNone;

  // The state of the whole key. REQUIRES: !key.empty(), before link().
  State add(std::string_view key);
  // Once, behind the last key.
  void link();

  State n_states() const { return trie_.n_nodes(); }
  bool is_empty() const { return n_states() == 1; }
  // Bytes of the text that the state stands for.
  int32_t depth(State state) const { return trie_.depth(state); }
  State step(State state, char byte) const;
  // The longest key that the text ends with, or kNone.
  State longest_key(State state) const { return longest_[static_cast<size_t>(state)]; }
  // The longest key that ends this one and is shorter, or kNone.
  State next_key(State key) const { return longest_key(fallback_[static_cast<size_t>(key)]); }

 private:
  ByteTrie trie_;
  std::vector<bool> is_key_;
  std::vector<State> fallback_ = {kStart};  // the longest proper end that is a state too
  std::vector<State> longest_ = {kNone};
};

}  // namespace candor::text
