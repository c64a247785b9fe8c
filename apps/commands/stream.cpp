#include "apps/commands/stream.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "apps/bench/machine_limits.h"
#include "apps/options/idle_options.h"
#include "apps/terminal/terminal.h"

namespace candor::apps {
namespace {

// Hands events from the engine thread to the one that writes.
class EventQueue {
 public:
  void push(const TokenEvent& event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(event);
    ready_.notify_one();
  }
  // Empty after a moment without events.
  std::vector<TokenEvent> take() {
    std::unique_lock lock(mutex_);
    ready_.wait_for(lock, std::chrono::milliseconds(50), [this] { return !events_.empty(); });
    return std::exchange(events_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::vector<TokenEvent> events_;  // guarded by mutex_
};

void add_to(CompletedChoice& choice, const TokenEvent& event) {
  if (event.token >= 0) choice.tokens.push_back(event.token);
  if (event.logprob) {
    choice.logprobs.push_back(*event.logprob);
    choice.top_logprobs.push_back(event.top_logprobs);
  }
  choice.text += event.text;
  if (!event.finish) return;
  choice.finish = *event.finish;
  choice.score = event.score;
}

const char* reason_text(const StreamOutcome& outcome) {
  if (outcome.was_interrupted) return "interrupted";
  switch (outcome.finish) {
    case FinishReason::kStopEos:
      return "end of text";
    case FinishReason::kStopId:
      return "stop token";
    case FinishReason::kStopString:
      return "stop text";
    case FinishReason::kLength:
      return "token limit";
    case FinishReason::kContextFull:
      return "context full (--on-context-full crop goes on)";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kDeadline:
      return "deadline";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// Each pass reads the weights once; it makes a token of every answer.
double passes_per_s(const StreamOutcome& outcome) {
  const RequestTimings& t = outcome.summary.timings;
  if (outcome.others.empty() && outcome.n_beams == 0) return t.decode_tokens_per_s;
  return t.itl_mean_ms > 0 ? 1e3 / t.itl_mean_ms : 0.0;
}

std::string rate(double tokens_per_s) {
  if (tokens_per_s <= 0) return "-";
  return tokens_per_s < 100 ? fmt::format("{:.1f} tok/s", tokens_per_s)
                            : format_count(static_cast<int64_t>(tokens_per_s)) + " tok/s";
}

}  // namespace

Result<StreamOutcome> stream_request(Engine& engine, const Request& request,
                                     const std::function<bool(std::string_view)>& write) {
  const auto queue = std::make_shared<EventQueue>();
  auto id = engine.submit(request, [queue](const TokenEvent& event) { queue->push(event); });
  if (!id) return id.error();
  StreamOutcome outcome;
  outcome.others.resize(static_cast<size_t>(request.n) - 1);
  outcome.n_beams = request.beams ? request.beams->width : 0;
  outcome.was_drawn = draws(request);
  bool cancelled = false;
  ProgressBar reading("reading", ProgressUnit::kTokens);
  for (bool done = false; !done;) {
    const std::vector<TokenEvent> events = queue->take();
    if (!events.empty()) reading.finish();
    if (const auto prompt = engine.prompt_progress(*id); prompt && prompt->n_read < prompt->n_prompt) {
      reading.update(static_cast<uint64_t>(prompt->n_read - prompt->n_cached),
                     static_cast<uint64_t>(prompt->n_prompt - prompt->n_cached));
    }
    for (const TokenEvent& event : events) {
      if (event.error) return *event.error;
      if (event.summary) {
        outcome.summary = *event.summary;
        done = true;
      }
      add_to(event.choice > 0 ? outcome.others[static_cast<size_t>(event.choice) - 1] : outcome, event);
      if (event.choice > 0) continue;
      if (!outcome.reader_gone && !event.text.empty() && !write(event.text)) outcome.reader_gone = true;
    }
    if (!cancelled && !done && (interrupted() || outcome.reader_gone)) {
      cancelled = true;
      outcome.was_interrupted = interrupted();
      static_cast<void>(engine.cancel(*id));
    }
  }
  return outcome;
}

LimitShares shares_of_limits(const StreamOutcome& outcome, const ModelInfo& info) {
  const auto limits = known_limits(info);
  if (!limits) return {};
  const RequestTimings& t = outcome.summary.timings;
  return {2.0 * static_cast<double>(info.used_parameters) * t.prefill_tokens_per_s / limit_of(*limits, info.arithmetic),
          static_cast<double>(info.used_weight_bytes) * passes_per_s(outcome) / limits->dram_read_bytes};
}

namespace {

std::string share(double value, std::string_view limit) {
  return value > 0 ? fmt::format(", {:.0f} % of {}", 100 * value, limit) : "";
}

// What the time until the first text went to.
std::string ttft_text(const RequestTimings& t) {
  const auto part = [](double ms) { return fmt::format("{:.{}f}", ms, ms < 10 ? 1 : 0); };
  const double waited = std::max(0.0, t.queue_ms - t.images_ms - t.template_ms - t.tokenize_ms);
  const std::string images = t.images_ms > 0.05 ? "images " + part(t.images_ms) + ", " : "";
  return fmt::format("TTFT {} (queue {}, {}template {}, tokenise {}, prefill {})", format_ms(t.ttft_ms), part(waited),
                     images, part(t.template_ms), part(t.tokenize_ms), part(t.prefill_ms));
}

std::string decode_text(const StreamOutcome& outcome, double dram_share) {
  const Usage& usage = outcome.summary.usage;
  const RequestTimings& t = outcome.summary.timings;
  std::string text = "decode ";
  if (!outcome.others.empty()) text += fmt::format("{} answers, ", outcome.others.size() + 1);
  text += fmt::format("{} tokens", usage.completion_tokens);
  // The search makes one token of each beam at a time, whichever of them become answers.
  text += outcome.n_beams > 0 ? fmt::format(" of {} beams, {} a beam", outcome.n_beams, rate(t.decode_tokens_per_s))
                              : ", " + rate(t.decode_tokens_per_s);
  text += share(dram_share, "DRAM");
  if (t.itl_mean_ms > 0) text += fmt::format(", ITL {}", format_ms(t.itl_mean_ms));
  return text;
}

// By who made them, where several did. A beam search drafts nothing, and one token needs no draft.
std::string drafts_text(const StreamOutcome& outcome, const ModelInfo& info) {
  const Usage& usage = outcome.summary.usage;
  const bool could_draft = info.draft_parameters > 0 && outcome.n_beams == 0 && usage.completion_tokens > 1;
  if (usage.drafted_tokens == 0) return could_draft ? " | no drafts: none would have paid" : "";
  std::string by;
  int n_sources = 0;
  for (size_t i = 0; i < kDraftSources; ++i) {
    const DraftUsage& drafts = usage.drafts[i];
    if (drafts.drafted_tokens == 0) continue;
    by += fmt::format("{}{} {} of {}", n_sources++ > 0 ? ", " : "", to_string(static_cast<DraftSource>(i)),
                      drafts.accepted_tokens, drafts.drafted_tokens);
  }
  return fmt::format(" | {} of {} drafts accepted", usage.accepted_tokens, usage.drafted_tokens) +
         (n_sources > 1 ? fmt::format(" ({})", by) : "");
}

}  // namespace

std::string summary_line(const StreamOutcome& outcome, const ModelInfo& info) {
  const LimitShares shares = shares_of_limits(outcome, info);
  const Usage& usage = outcome.summary.usage;
  const RequestTimings& t = outcome.summary.timings;
  const std::string on_disk = usage.disk_tokens > 0 ? fmt::format(", {} of them on disk", usage.disk_tokens) : "";
  const std::string cached = usage.cached_tokens > 0 ? fmt::format(" ({} cached{})", usage.cached_tokens, on_disk) : "";
  std::string line = fmt::format("{} | prefill {} tokens{}, {}{} | {}", ttft_text(t), usage.prompt_tokens, cached,
                                 rate(t.prefill_tokens_per_s), share(shares.prefill, info.arithmetic),
                                 decode_text(outcome, shares.decode_dram));
  line += drafts_text(outcome, info);
  if (usage.cropped_tokens > 0) line += fmt::format(" | {} oldest tokens cropped", usage.cropped_tokens);
  if (info.n_fast_matrices > 0) line += fmt::format(" | {} fast matrices", info.n_fast_matrices);
  line += fmt::format(" | {}", reason_text(outcome));
  return outcome.was_drawn ? line + fmt::format(" | seed {}", usage.seed) : line;
}

std::string logprobs_text(const Engine& engine, const CompletedChoice& answer) {
  const Style style(STDOUT_FILENO);
  const auto shown = [&](TokenId token) { return fitted(printable(engine.piece(token)), 16); };
  std::string out;
  for (size_t i = 0; i < answer.logprobs.size(); ++i) {
    const TokenLogprob& one = answer.logprobs[i];
    const std::string piece = shown(one.token);
    std::string others;
    for (const TokenLogprob& top : answer.top_logprobs[i])
      others += fmt::format("{}{} {:.3f}", others.empty() ? "" : ", ", shown(top.token), top.logprob);
    out += fmt::format("  {:>4} {} {:>8.3f} {:>6.3f} {}\n", i + 1, padded(style.green(piece), 16, piece), one.logprob,
                       std::exp(static_cast<double>(one.logprob)), style.dim(others));
  }
  return out.empty() ? out : style.dim(fmt::format("  {:>4} {:<16} {:>8} {:>6}\n", "", "token", "logprob", "p")) + out;
}

std::string rest_of_answers(const Engine& engine, const StreamOutcome& outcome) {
  const Style style(STDOUT_FILENO);
  std::string out = outcome.text.ends_with('\n') ? "" : "\n";
  const auto add_end = [&](size_t number, const CompletedChoice& answer) {
    const std::string score = answer.score ? fmt::format(": {:.4f}", *answer.score) : "";
    if (!outcome.others.empty()) out += style.dim(fmt::format("({}{})", number, score)) + "\n";
    out += logprobs_text(engine, answer);
  };
  add_end(1, outcome);
  for (size_t i = 0; i < outcome.others.size(); ++i) {
    out += outcome.others[i].text + (outcome.others[i].text.ends_with('\n') ? "" : "\n");
    add_end(i + 2, outcome.others[i]);
  }
  return out;
}

}  // namespace candor::apps
