#include "serve/llama_cpp/line_cut.h"

#include <ratio>

namespace candor::serve::llama_cpp {

size_t LineCut::take(std::string_view text, std::chrono::steady_clock::time_point now) {
  if (reason_ != CutReason::kNone) return 0;
  if (!has_begun_) {
    has_begun_ = true;
    began_ = now;
  }
  const double ms = std::chrono::duration<double, std::milli>(now - began_).count();
  if (most_ms_ > 0 && has_new_line_ && ms > most_ms_) {
    reason_ = CutReason::kTime;
    return 0;
  }
  return scan(text);
}

// An empty line has no indent to judge.
size_t LineCut::scan(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      has_new_line_ = is_in_indent_ = true;
      indent_ = 0;
    } else if (is_in_indent_ && (c == ' ' || c == '\t')) {
      ++indent_;
    } else if (is_in_indent_ && c != '\r') {
      is_in_indent_ = false;
      if (indent_ >= n_indent_) continue;
      reason_ = CutReason::kIndent;
      return i;
    }
  }
  return text.size();
}

}  // namespace candor::serve::llama_cpp
