#include "apps/commands/stream.h"

#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "apps/bench/machine_limits.h"
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
  bool cancelled = false;
  for (bool done = false; !done;) {
    for (const TokenEvent& event : queue->take()) {
      if (event.error) return *event.error;
      if (event.summary) {
        outcome.summary = *event.summary;
        done = true;
      }
      if (event.choice > 0) {
        add_to(outcome.others[static_cast<size_t>(event.choice) - 1], event);
        continue;
      }
      if (event.token >= 0) outcome.tokens.push_back(event.token);
      outcome.text += event.text;
      if (!outcome.reader_gone && !event.text.empty() && !write(event.text)) outcome.reader_gone = true;
      if (!event.finish) continue;
      outcome.finish = *event.finish;
      outcome.score = event.score;
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
  if (info.backend != "cpu") return {};
  const auto limits = known_limits(info.n_threads);
  if (!limits) return {};
  const RequestTimings& t = outcome.summary.timings;
  return {2.0 * static_cast<double>(info.n_parameters) * t.prefill_tokens_per_s / limits->int8_ops,
          static_cast<double>(info.weight_bytes) * t.decode_tokens_per_s / limits->dram_read_bytes};
}

std::string summary_line(const StreamOutcome& outcome, const ModelInfo& info) {
  const LimitShares shares = shares_of_limits(outcome, info);
  const auto share = [](double value, const char* limit) {
    return value > 0 ? fmt::format(", {:.0f} % of {}", 100 * value, limit) : "";
  };
  const Usage& usage = outcome.summary.usage;
  const RequestTimings& t = outcome.summary.timings;
  std::string cached = usage.cached_tokens > 0 ? fmt::format(" ({} cached)", usage.cached_tokens) : "";
  const std::string drafted =
      usage.drafted_tokens > 0 ? fmt::format(" | {} of {} drafts accepted", usage.accepted_tokens, usage.drafted_tokens)
                               : "";
  std::string cropped =
      usage.cropped_tokens > 0 ? fmt::format(" | {} oldest tokens cropped", usage.cropped_tokens) : "";
  const std::string fast = info.n_fast_matrices > 0 ? fmt::format(" | {} fast matrices", info.n_fast_matrices) : "";
  return fmt::format("TTFT {} | prefill {} tokens{}, {}{} | decode {} tokens, {}{}{}{}{} | {} | seed {}",
                     format_ms(t.ttft_ms), usage.prompt_tokens, cached, rate(t.prefill_tokens_per_s),
                     share(shares.prefill_int8, "int8"), usage.completion_tokens, rate(t.decode_tokens_per_s),
                     share(shares.decode_dram, "DRAM"), drafted, cropped, fast, reason_text(outcome), usage.seed);
}

}  // namespace candor::apps
