#include "engine/request/stopwatch.h"

namespace candor::engine {
namespace {

double ms(int64_t ns) {
  return static_cast<double>(ns) * 1e-6;
}

double per_second(int64_t n, double duration_ms) {
  return duration_ms > 0.0 ? static_cast<double>(n) * 1e3 / duration_ms : 0.0;
}

}  // namespace

RequestTimings Stopwatch::timings(int64_t n_prefilled) const {
  RequestTimings timings;
  if (tokenized_ != kNever) {
    timings.template_ms = ms(rendered_ - submitted_);
    timings.tokenize_ms = ms(tokenized_ - rendered_);
  }
  timings.e2e_ms = ms(end_ - submitted_);
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
