#include "text/tokenizer/special_matcher.h"

#include "text/tokenizer/char_class.h"

namespace candor::text {

void SpecialMatcher::add(std::string_view text, TokenId token, Rules rules) {
  const ByteTrie::Node node = trie_.insert(text);
  entries_.resize(static_cast<size_t>(trie_.n_nodes()));
  Entry& entry = entries_[static_cast<size_t>(node)];
  if (entry.token == kNoToken) entry = {token, rules};
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
    std::string_view plain = text.substr(begin, at - begin);
    if (match.rules.strips_left) plain.remove_suffix(white_space_suffix(plain));
    if (!plain.empty()) fragments.push_back({plain, kNoToken});
    fragments.push_back({{}, match.token});
    at += match.length;
    if (match.rules.strips_right) at += white_space_prefix(text.substr(at));
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
    if (entry.token != kNoToken && is_allowed(entry, end, limit)) best = {end - at, entry.token, entry.rules};
  }
  return best;
}

bool SpecialMatcher::is_allowed(const Entry& entry, size_t end, const Limit& limit) {
  if (!entry.rules.is_control) return true;
  if (!limit.control_allowed) return false;
  if (limit.breaks_after.empty()) return true;
  const size_t next = limit.breaks_after.front();
  return next > end || (next == end && !limit.begins_at_break);
}

}  // namespace candor::text
