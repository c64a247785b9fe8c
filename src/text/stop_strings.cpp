#include "text/stop_strings.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace candor::text {

StopStrings::StopStrings(std::vector<std::string> strings) {
  for (size_t i = 0; i < strings.size(); ++i) {
    CANDOR_CHECK(!strings[i].empty());
    const size_t state = static_cast<size_t>(automaton_.add(strings[i]));
    index_.resize(static_cast<size_t>(automaton_.n_states()), SIZE_MAX);
    index_[state] = std::min(index_[state], i);
  }
  automaton_.link();
}

bool StopStrings::advance(char byte) {
  held_ += byte;
  ++n_seen_;
  state_ = automaton_.step(state_, byte);
  if (const auto end = automaton_.longest_key(state_); end != StringAutomaton::kNone) {
    const uint64_t begin = n_seen_ - static_cast<uint64_t>(automaton_.depth(end));
    if (!found_ || begin < found_->begin) found_ = {begin, index_[static_cast<size_t>(end)]};
  }
  const uint64_t earliest_open = n_seen_ - static_cast<uint64_t>(automaton_.depth(state_));
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
  const uint64_t open = n_seen_ - static_cast<uint64_t>(automaton_.depth(state_));
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
