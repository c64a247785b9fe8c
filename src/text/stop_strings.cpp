#include "text/stop_strings.h"

#include <algorithm>

#include "base/error.h"

namespace candor::text {

StopStrings::StopStrings(std::vector<std::string> strings) {
  for (size_t i = 0; i < strings.size(); ++i) {
    CANDOR_CHECK(!strings[i].empty());
    const size_t state = static_cast<size_t>(trie_.insert(strings[i]));
    index_.resize(static_cast<size_t>(trie_.n_nodes()), SIZE_MAX);
    index_[state] = std::min(index_[state], i);
  }
  index_.resize(static_cast<size_t>(trie_.n_nodes()), SIZE_MAX);
  link_states();
}

// Shorter states first: the links of a state lead to shorter ones.
void StopStrings::link_states() {
  const size_t n = static_cast<size_t>(trie_.n_nodes());
  std::vector<ByteTrie::Node> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<ByteTrie::Node>(i);
  std::stable_sort(order.begin(), order.end(),
                   [this](ByteTrie::Node a, ByteTrie::Node b) { return trie_.depth(a) < trie_.depth(b); });
  fallback_.assign(n, ByteTrie::kRoot);
  longest_.assign(n, ByteTrie::kNone);
  for (const ByteTrie::Node node : order) {
    if (node == ByteTrie::kRoot) continue;
    const size_t at = static_cast<size_t>(node);
    const ByteTrie::Node parent = trie_.parent(node);
    if (parent != ByteTrie::kRoot) fallback_[at] = step(fallback_[static_cast<size_t>(parent)], trie_.byte(node));
    longest_[at] = index_[at] != SIZE_MAX ? node : longest_[static_cast<size_t>(fallback_[at])];
  }
}

ByteTrie::Node StopStrings::step(ByteTrie::Node state, char byte) const {
  ByteTrie::Node next = trie_.child(state, byte);
  while (next == ByteTrie::kNone && state != ByteTrie::kRoot) {
    state = fallback_[static_cast<size_t>(state)];
    next = trie_.child(state, byte);
  }
  return next == ByteTrie::kNone ? ByteTrie::kRoot : next;
}

bool StopStrings::advance(char byte) {
  held_ += byte;
  ++n_seen_;
  state_ = step(state_, byte);
  if (const ByteTrie::Node end = longest_[static_cast<size_t>(state_)]; end != ByteTrie::kNone) {
    const uint64_t begin = n_seen_ - static_cast<uint64_t>(trie_.depth(end));
    if (!found_ || begin < found_->begin) found_ = {begin, index_[static_cast<size_t>(end)]};
  }
  const uint64_t earliest_open = n_seen_ - static_cast<uint64_t>(trie_.depth(state_));
  return found_ && earliest_open >= found_->begin;
}

std::string StopStrings::release(uint64_t end) {
  const size_t n = static_cast<size_t>(end - n_released_);
  std::string text = held_.substr(0, n);
  held_.erase(0, n);
  n_released_ = end;
  return text;
}

StopResult StopStrings::push(std::string_view text) {
  for (const char byte : text) {
    if (over_) break;
    over_ = advance(byte);
  }
  StopResult result;
  if (over_) {
    result.text = release(std::max(found_->begin, n_released_));
    held_.clear();
    n_released_ = n_seen_;
    result.hit = found_->index;
    return result;
  }
  const uint64_t open = n_seen_ - static_cast<uint64_t>(trie_.depth(state_));
  result.text = release(found_ ? std::min(open, found_->begin) : open);
  return result;
}

std::string StopStrings::finish() {
  std::string text = over_ ? std::string() : release(found_ ? found_->begin : n_seen_);
  over_ = true;
  held_.clear();
  return text;
}

}  // namespace candor::text
