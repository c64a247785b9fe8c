#include "text/tokenizer/special_matcher.h"

namespace candor::text {

void SpecialMatcher::add(std::string_view text, TokenId token, bool is_control) {
  const ByteTrie::Node node = trie_.insert(text);
  entries_.resize(static_cast<size_t>(trie_.n_nodes()));
  Entry& entry = entries_[static_cast<size_t>(node)];
  if (entry.token == kNoToken) entry = {token, is_control};
}

std::vector<Fragment> SpecialMatcher::split(std::string_view text, const EncodeOptions& options) const {
  std::vector<Fragment> fragments;
  std::span<const size_t> breaks = options.breaks;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    Limit limit{.control_allowed = options.parse_special};
    while (!breaks.empty() && breaks.front() <= at) {
      limit.begins_at_break = breaks.front() == at;
      breaks = breaks.subspan(1);
    }
    limit.breaks_after = breaks;
    const Match match = longest_at(text, at, limit);
    if (match.token == kNoToken) {
      ++at;
      continue;
    }
    if (at > begin) fragments.push_back({text.substr(begin, at - begin), kNoToken});
    fragments.push_back({{}, match.token});
    at += match.length;
    begin = at;
  }
  if (begin < text.size()) fragments.push_back({text.substr(begin), kNoToken});
  return fragments;
}

SpecialMatcher::Match SpecialMatcher::longest_at(std::string_view text, size_t at, const Limit& limit) const {
  Match best;
  ByteTrie::Node node = ByteTrie::kRoot;
  for (size_t end = at; end < text.size();) {
    node = trie_.child(node, text[end]);
    if (node == ByteTrie::kNone) break;
    ++end;
    const Entry& entry = entries_[static_cast<size_t>(node)];
    if (entry.token != kNoToken && is_allowed(entry, end, limit)) best = {end - at, entry.token};
  }
  return best;
}

bool SpecialMatcher::is_allowed(const Entry& entry, size_t end, const Limit& limit) {
  if (!entry.is_control) return true;
  if (!limit.control_allowed) return false;
  if (limit.breaks_after.empty()) return true;
  const size_t next = limit.breaks_after.front();
  return next > end || (next == end && !limit.begins_at_break);
}

}  // namespace candor::text
