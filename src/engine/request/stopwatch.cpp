#include "engine/request/stopwatch.h"

#include <cstddef>

namespace candor::engine {
namespace {

double ms(int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

double per_second(int64_t n, double duration_ms) {
  return duration_ms > 0.0 ? static_cast<double>(n) * 1e3 / duration_ms : 0.0;
}

}  // namespace

void Stopwatch::on_prompt(int64_t begin_ns, int64_t end_ns, int64_t n_tokens) {
  if (first_token_ != kNever || n_tokens <= 0) return;
  PromptChunks& kept = prompt_chunks_;
  if (kept.n == PromptChunks::kMost) {
    for (size_t i = 0; i < PromptChunks::kMost / 2; ++i) {
      const PromptChunk &left = kept.chunks[2 * i], &right = kept.chunks[2 * i + 1];
      kept.chunks[i] = {left.begin_ms, right.end_ms, left.n_tokens + right.n_tokens};
    }
    kept.n = PromptChunks::kMost / 2;
  }
  kept.chunks[kept.n++] = {ms(begin_ns - submitted_), ms(end_ns - submitted_), n_tokens};
}

RequestTimings Stopwatch::timings(int64_t n_prefilled) const {
  RequestTimings timings;
  if (tokenized_ != kNever) {
    timings.images_ms = ms(decoded_ - submitted_);
    timings.template_ms = ms(rendered_ - decoded_);
    timings.tokenize_ms = ms(tokenized_ - rendered_);
  }
  if (images_wanted_ != kNever)
    timings.images_ms += ms((images_ready_ == kNever ? end_ : images_ready_) - images_wanted_);
  timings.e2e_ms = ms(end_ - submitted_);
  timings.prompt_chunks = prompt_chunks_;
  timings.queue_ms = first_row_ == kNever ? timings.e2e_ms : ms(first_row_ - submitted_);
  if (first_token_ == kNever) return timings;
  timings.ttft_ms = ms((first_text_ == kNever ? first_token_ : first_text_) - submitted_);
  timings.prefill_ms = ms(first_token_ - first_row_);
  timings.decode_ms = ms(last_token_ - first_token_);
  timings.prefill_tokens_per_s = per_second(n_prefilled, timings.prefill_ms);
  timings.decode_tokens_per_s = per_second(n_gaps_, timings.decode_ms);
  if (n_gaps_ > 0) timings.itl_mean_ms = ms(all_gaps_) / static_cast<double>(n_gaps_);
  timings.itl_max_ms = ms(longest_gap_);
  return timings;
}

}  // namespace candor::engine
