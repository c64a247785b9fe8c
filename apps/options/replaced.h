#pragma once
// A text with one part in place of another, wherever it stands. Any thread.

#include <string>
#include <string_view>

namespace candor::apps {

inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  while (true) {
    const size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

}  // namespace candor::apps
