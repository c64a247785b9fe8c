#pragma once
// Cuts a text short by two rules of llama.cpp's API that the engine does not know: before a later line with a smaller
// indent than n_indent, and at the first token after a time limit once a line is complete. One thread at a time.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace candor::serve::llama_cpp {

enum class CutReason : uint8_t { kNone, kIndent, kTime };

class LineCut {
 public:
  // 0: no such limit.
  LineCut(int64_t n_indent, double most_ms) : n_indent_(n_indent), most_ms_(most_ms) {}

  // A token came, with more text: how many of its bytes belong to the answer. Once it is cut, none.
  size_t take(std::string_view text, std::chrono::steady_clock::time_point now);
  CutReason reason() const { return reason_; }
  bool has_new_line() const { return has_new_line_; }

 private:
  size_t scan(std::string_view text);

  const int64_t n_indent_;
  const double most_ms_;
  bool has_begun_ = false;
  std::chrono::steady_clock::time_point began_{};
  bool has_new_line_ = false;
  bool is_in_indent_ = false;  // of a later line
  int64_t indent_ = 0;
  CutReason reason_ = CutReason::kNone;
};

}  // namespace candor::serve::llama_cpp
