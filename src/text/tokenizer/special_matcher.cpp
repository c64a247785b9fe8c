#include "text/tokenizer/special_matcher.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "text/tokenizer/char_class.h"

namespace candor::text {
namespace {

using State = StringAutomaton::State;

constexpr size_t kWindowBytes = size_t{1} << 16;

}  // namespace

// What begins at each offset of one stretch of the text. Control tokens do not cross breaks: their search starts anew
// at each of them.
class SpecialMatcher::Window {
 public:
  Window(const SpecialMatcher& matcher, std::string_view text, const EncodeOptions& options)
      : matcher_(matcher), text_(text), options_(options) {}

  // The longest token that begins there and may be recognised. REQUIRES: offsets rise from call to call.
  Match at(size_t offset) {
    if (offset >= end_) look_at(offset);
    return matches_[offset - begin_];
  }

 private:
  void look_at(size_t begin) {
    begin_ = begin;
    end_ = std::min(text_.size(), begin + kWindowBytes);
    matches_.assign(end_ - begin_, Match{});
    look_for(matcher_.users_, {});
    if (options_.parse_special) look_for(matcher_.controls_, options_.breaks);
  }

  void look_for(const Kind& kind, std::span<const size_t> breaks) {
    if (kind.automaton.is_empty()) return;
    const size_t from = std::min(text_.size(), end_ + kind.longest);
    size_t n_before = static_cast<size_t>(std::ranges::lower_bound(breaks, from) - breaks.begin());
    size_t next_break = n_before < breaks.size() ? breaks[n_before] : SIZE_MAX;
    State state = StringAutomaton::kStart;
    for (size_t offset = from; offset-- > begin_;) {
      while (n_before > 0 && breaks[n_before - 1] > offset) {
        next_break = breaks[--n_before];
        state = StringAutomaton::kStart;
      }
      state = kind.automaton.step(state, text_[offset]);
      if (offset >= end_) continue;
      State key = kind.automaton.longest_key(state);
      const bool begins_at_break = n_before > 0 && breaks[n_before - 1] == offset;
      const auto length_of = [&](State of) { return static_cast<size_t>(kind.automaton.depth(of)); };
      if (key != StringAutomaton::kNone && begins_at_break && offset + length_of(key) == next_break) {
        key = kind.automaton.next_key(key);
      }
      Match& match = matches_[offset - begin_];
      if (key != StringAutomaton::kNone && length_of(key) > match.length) {
        match = {length_of(key), &kind.entries[static_cast<size_t>(key)]};
      }
    }
  }

  const SpecialMatcher& matcher_;
  std::string_view text_;
  const EncodeOptions& options_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<Match> matches_;
};

void SpecialMatcher::add(std::string_view text, TokenId token, Rules rules) {
  Kind& kind = rules.is_control ? controls_ : users_;
  const State state = kind.automaton.add(std::string(text.rbegin(), text.rend()));
  kind.entries.resize(static_cast<size_t>(kind.automaton.n_states()));
  kind.longest = std::max(kind.longest, text.size());
  Entry& entry = kind.entries[static_cast<size_t>(state)];
  if (entry.token == kNoToken) entry = {token, rules};
}

void SpecialMatcher::link() {
  users_.automaton.link();
  controls_.automaton.link();
}

std::vector<Fragment> SpecialMatcher::split(std::string_view text, const EncodeOptions& options) const {
  std::vector<Fragment> fragments;
  const bool may_match = !users_.automaton.is_empty() || (options.parse_special && !controls_.automaton.is_empty());
  Window window(*this, text, options);
  size_t begin = 0;
  for (size_t at = 0; may_match && at < text.size();) {
    const Match match = window.at(at);
    if (match.length == 0) {
      ++at;
      continue;
    }
    std::string_view plain = text.substr(begin, at - begin);
    if (match.entry->rules.strips_left) plain.remove_suffix(white_space_suffix(plain));
    if (!plain.empty()) fragments.push_back({plain, kNoToken});
    fragments.push_back({{}, match.entry->token});
    at += match.length;
    if (match.entry->rules.strips_right) at += white_space_prefix(text.substr(at));
    begin = at;
  }
  if (begin < text.size()) fragments.push_back({text.substr(begin), kNoToken});
  return fragments;
}

}  // namespace candor::text
