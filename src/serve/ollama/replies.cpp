#include "serve/ollama/replies.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "candor/event.h"
#include "serve/core/answer_reader.h"
#include "serve/core/json_body.h"

namespace candor::serve::ollama {
namespace {

int64_t nanoseconds(double ms) {
  constexpr double kPerMs = 1e6;
  return static_cast<int64_t>(ms * kPerMs);
}

// What the model wrote, in one line or in all.
struct Words {
  std::string content;
  std::string thinking;
  Json calls = Json::array();
  Json logprobs = Json::array();

  bool is_empty() const { return content.empty() && thinking.empty() && calls.empty() && logprobs.empty(); }
};

// How a route's lines hold them.
using Place = void (*)(Json& line, Words words);

void place_rest(Json& holder, Words& words) {
  if (!words.thinking.empty()) holder["thinking"] = std::move(words.thinking);
  if (!words.calls.empty()) holder["tool_calls"] = std::move(words.calls);
}

void place_in_message(Json& line, Words words) {
  Json message = {{"role", "assistant"}, {"content", std::move(words.content)}};
  place_rest(message, words);
  line["message"] = std::move(message);
}

void place_in_response(Json& line, Words words) {
  line["response"] = std::move(words.content);
  place_rest(line, words);
}

const char* done_reason(FinishReason finish) {
  return is_cut(finish) ? "length" : "stop";
}

class LineReply final : public Reply {
 public:
  // context: the tokens of the text so far, where the last line shows them.
  LineReply(const Engine& engine, ReplyHead head, Place place, std::optional<std::vector<TokenId>> context)
      : engine_(engine),
        head_(std::move(head)),
        place_(place),
        context_(std::move(context)),
        reader_(engine, head_.form) {}

  void open(size_t, const Emit&) override {}

  void on_event(size_t, const TokenEvent& event, const Emit& emit) override {
    if (event.summary) {
      usage_.add(*event.summary);
      e2e_ms_ = event.summary->timings.e2e_ms;
      head_.warnings.insert(head_.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
      const int64_t n_left_out = event.summary->usage.truncated_tokens + event.summary->usage.cropped_tokens;
      if (n_left_out > 0) head_.warnings.push_back(fmt::format("{} of the oldest tokens were left out", n_left_out));
    }
    if (context_ && event.token >= 0) context_->push_back(event.token);
    Words words;
    for (text::OutputPiece& piece : reader_.take(event)) add(piece, words);
    if (event.logprob && head_.wants_logprobs) words.logprobs.push_back(logprob_json(event));
    if (!head_.is_stream) {
      keep(std::move(words));
    } else if (!words.is_empty()) {
      emit(line_of(std::move(words), false));
    }
    if (!event.finish) return;
    done_reason_ = done_reason(*event.finish);
    if (std::string warning = reader_.warning(); !warning.empty()) head_.warnings.push_back(std::move(warning));
  }

  // An empty line: clients add its text to the rest.
  void on_wait(const Waiting& /*waiting*/, const Emit& emit) override { emit(line_of({}, false)); }

  Json whole() override { return last_line(std::move(kept_)); }
  void close(const Emit& emit) override { emit(last_line({})); }

 private:
  void add(text::OutputPiece& piece, Words& words) {
    if (piece.kind == text::OutputPiece::Kind::kContent) {
      words.content += piece.text;
    } else if (piece.kind == text::OutputPiece::Kind::kReasoning) {
      words.thinking += piece.text;
    } else {
      Json arguments = read_written(piece.text).value_or(Json());
      if (!arguments.is_object()) arguments = Json::object();
      const size_t index = n_calls_++;
      words.calls.push_back(
          {{"id", fmt::format("call_{}_{}", head_.number, index)},
           {"function", {{"index", index}, {"name", std::move(piece.name)}, {"arguments", std::move(arguments)}}}});
    }
  }

  void keep(Words words) {
    kept_.content += words.content;
    kept_.thinking += words.thinking;
    for (Json& call : words.calls) kept_.calls.push_back(std::move(call));
    for (Json& logprob : words.logprobs) kept_.logprobs.push_back(std::move(logprob));
  }

  Json logprob_json(const TokenEvent& event) const {
    Json json = token_json(engine_, *event.logprob);
    if (!event.top_logprobs.empty()) json["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : event.top_logprobs) json["top_logprobs"].push_back(token_json(engine_, top));
    return json;
  }

  Json line_of(Words words, bool is_last) const {
    Json line = {{"model", head_.model}, {"created_at", rfc3339_now()}};
    Json logprobs = std::move(words.logprobs);
    place_(line, std::move(words));
    line["done"] = is_last;
    if (!logprobs.empty()) line["logprobs"] = std::move(logprobs);
    return line;
  }

  Json last_line(Words words) {
    Json line = line_of(std::move(words), true);
    line["done_reason"] = done_reason_;
    if (context_) line["context"] = *context_;
    line["total_duration"] = nanoseconds(e2e_ms_);
    line["load_duration"] = 0;
    line["prompt_eval_count"] = usage_.usage.prompt_tokens;
    line["prompt_eval_duration"] = nanoseconds(usage_.timings.prefill_ms);
    line["eval_count"] = usage_.usage.completion_tokens;
    line["eval_duration"] = nanoseconds(usage_.timings.decode_ms);
    line["timings"] = timings_json(usage_, head_.decode_limit);
    if (!head_.warnings.empty()) line["warnings"] = head_.warnings;
    return line;
  }

  const Engine& engine_;
  ReplyHead head_;
  const Place place_;
  std::optional<std::vector<TokenId>> context_;
  AnswerReader reader_;
  Words kept_;
  ReplyUsage usage_;
  double e2e_ms_ = 0;
  size_t n_calls_ = 0;
  const char* done_reason_ = "stop";
};

}  // namespace

std::unique_ptr<Reply> make_chat_reply(const Engine& engine, ReplyHead head) {
  return std::make_unique<LineReply>(engine, std::move(head), place_in_message, std::nullopt);
}

std::unique_ptr<Reply> make_generate_reply(const Engine& engine, ReplyHead head,
                                           std::optional<std::vector<TokenId>> prompt) {
  return std::make_unique<LineReply>(engine, std::move(head), place_in_response, std::move(prompt));
}

std::string rfc3339_now() {
  constexpr int64_t kPerSecond = 1'000'000'000;
  const int64_t ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::time_t seconds = ns / kPerSecond;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  char text[32];
  const size_t n = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:09}Z", std::string_view(text, n), ns % kPerSecond);
}

Json waiting_line(const std::string& model, bool is_chat) {
  Json line = {{"model", model}, {"created_at", rfc3339_now()}};
  (is_chat ? place_in_message : place_in_response)(line, {});
  line["done"] = false;
  return line;
}

Json idle_reply(const std::string& model, bool is_chat, bool is_unload) {
  Json line = {{"model", model}, {"created_at", rfc3339_now()}};
  (is_chat ? place_in_message : place_in_response)(line, {});
  line["done"] = true;
  line["done_reason"] = is_unload ? "unload" : "load";
  return line;
}

}  // namespace candor::serve::ollama
