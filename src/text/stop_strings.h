#pragma once
// Finds stop strings in a stream of text and holds back what could be the beginning of one, so that nothing of a stop
// string ever leaks. All strings are searched at once, in time linear in the text. Of several hits the one that starts
// first wins, and of those the one that is complete first; how the text is cut into pushes changes nothing. One
// instance per output; not thread-safe.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/string_automaton.h"

namespace candor::text {

struct StopResult {
  std::string text;           // safe to show now
  std::optional<size_t> hit;  // index of the stop string that ended the text
};

class StopStrings {
 public:
  // REQUIRES: no string is empty.
  explicit StopStrings(std::vector<std::string> strings);

  // After a hit nothing more is shown: later calls return "" and the same hit.
  StopResult push(std::string_view text);
  // The held back text; nothing more will come. Ends before a stop string that only waited for one that might have
  // started earlier.
  std::string finish();
  // After finish(): the stop string before which the text ended, if any.
  std::optional<size_t> hit() const { return found_ ? std::optional(found_->index) : std::nullopt; }

 private:
  struct Hit {
    uint64_t begin = 0;  // offset in the whole text
    size_t index = 0;
  };

  // Appends one byte; is the search over?
  bool advance(char byte);
  std::string release(uint64_t end);

  // Constant after construction.
  StringAutomaton automaton_;
  std::vector<size_t> index_;  // by state: of the stop string that it is

  StringAutomaton::State state_ = StringAutomaton::kStart;
  uint64_t n_seen_ = 0;      // bytes pushed
  uint64_t n_released_ = 0;  // bytes returned; held_ are those behind
  std::optional<Hit> found_;
  bool over_ = false;
  std::string held_;
};

}  // namespace candor::text
