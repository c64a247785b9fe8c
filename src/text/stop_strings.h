#pragma once
// Finds stop strings in a stream of text and holds back what could be the beginning of one, so that nothing of a stop
// string ever leaks. All strings are searched at once; of several hits the one that starts first wins, then the
// longer. One instance per output; not thread-safe.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace candor::text {

struct StopResult {
  std::string text;           // safe to show now
  std::optional<size_t> hit;  // index of the stop string that ended the text
};

class StopStrings {
 public:
  // REQUIRES: no string is empty.
  explicit StopStrings(std::vector<std::string> strings);

  StopResult push(std::string_view text);
  // The held back text; nothing more will come.
  std::string finish();

 private:
  std::vector<std::string> strings_;
  std::string held_;
};

}  // namespace candor::text
