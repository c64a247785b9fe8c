#pragma once
// When things happened to one request, in nanoseconds of an obs::Clock, and the figures that follow.

#include <algorithm>
#include <cstdint>

#include "candor/event.h"

namespace candor::engine {

inline constexpr int64_t kNever = -1;

class Stopwatch {
 public:
  explicit Stopwatch(int64_t now_ns) : submitted_(now_ns), end_(now_ns) {}

  // Its images were decoded, its prompt became text, and then tokens.
  void on_read(int64_t decoded_ns, int64_t rendered_ns, int64_t tokenized_ns) {
    decoded_ = decoded_ns;
    rendered_ = rendered_ns;
    tokenized_ = tokenized_ns;
  }
  // It begins, and ends, to wait until its images are encoded.
  void on_images_wanted(int64_t now_ns) { images_wanted_ = now_ns; }
  void on_images_ready(int64_t now_ns) { images_ready_ = now_ns; }
  // A step that computes rows of the request begins.
  void on_rows(int64_t now_ns) {
    if (first_row_ == kNever) first_row_ = now_ns;
  }
  // A step computed n_tokens of the prompt. Counts until the first token: what is read again later is not shown.
  void on_prompt(int64_t begin_ns, int64_t end_ns, int64_t n_tokens);
  // A token of some choice came, with text that may be shown or without; before_ns: when that choice's last one came,
  // or kNever. Returns the time between the two, or kNever.
  int64_t on_token(int64_t now_ns, int64_t before_ns, bool has_text) {
    if (first_token_ == kNever) first_token_ = now_ns;
    if (has_text && first_text_ == kNever) first_text_ = now_ns;
    last_token_ = now_ns;
    if (before_ns == kNever) return kNever;
    const int64_t gap = now_ns - before_ns;
    longest_gap_ = std::max(longest_gap_, gap);
    all_gaps_ += gap;
    ++n_gaps_;
    return gap;
  }
  // Text may be shown that no token came with.
  void on_text(int64_t now_ns) {
    if (first_text_ == kNever) first_text_ = now_ns;
  }
  bool has_token() const { return first_token_ != kNever; }
  void on_end(int64_t now_ns) { end_ = now_ns; }

  // n_prefilled: prompt tokens that were computed, not found in the prefix cache.
  RequestTimings timings(int64_t n_prefilled) const;

 private:
  int64_t submitted_;
  int64_t decoded_ = kNever;
  int64_t rendered_ = kNever;
  int64_t tokenized_ = kNever;
  int64_t images_wanted_ = kNever;
  int64_t images_ready_ = kNever;
  int64_t first_row_ = kNever;
  int64_t first_token_ = kNever;
  int64_t first_text_ = kNever;
  int64_t last_token_ = kNever;
  int64_t end_;
  int64_t longest_gap_ = 0;
  int64_t all_gaps_ = 0;
  int64_t n_gaps_ = 0;
  PromptChunks prompt_chunks_;
};

}  // namespace candor::engine
