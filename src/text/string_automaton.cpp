#include "text/string_automaton.h"

#include <algorithm>
#include <numeric>

namespace candor::text {

StringAutomaton::State StringAutomaton::add(std::string_view key) {
  const State state = trie_.insert(key);
  is_key_.resize(static_cast<size_t>(trie_.n_nodes()));
  is_key_[static_cast<size_t>(state)] = true;
  return state;
}

// Shorter states first: the links of a state lead to shorter ones.
void StringAutomaton::link() {
  const size_t n = static_cast<size_t>(trie_.n_nodes());
  is_key_.resize(n);
  std::vector<State> order(n);
  std::iota(order.begin(), order.end(), State{0});
  std::ranges::stable_sort(order, {}, [this](State state) { return trie_.depth(state); });
  fallback_.assign(n, kStart);
  longest_.assign(n, kNone);
  for (const State state : order) {
    if (state == kStart) continue;
    const size_t at = static_cast<size_t>(state);
    const State parent = trie_.parent(state);
    if (parent != kStart) fallback_[at] = step(fallback_[static_cast<size_t>(parent)], trie_.byte(state));
    longest_[at] = is_key_[at] ? state : longest_[static_cast<size_t>(fallback_[at])];
  }
}

StringAutomaton::State StringAutomaton::step(State state, char byte) const {
  State next = trie_.child(state, byte);
  while (next == kNone && state != kStart) {
    state = fallback_[static_cast<size_t>(state)];
    next = trie_.child(state, byte);
  }
  return next == kNone ? kStart : next;
}

}  // namespace candor::text
