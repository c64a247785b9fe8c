// Replies of /v1/completions.

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/reply.h"

namespace candor::openai {
namespace {

constexpr float kNever = -9999.0f;

float finite(float logprob) {
  return std::isfinite(logprob) ? std::max(logprob, kNever) : kNever;
}

int64_t n_code_points(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

class CompletionReply final : public Reply {
 public:
  CompletionReply(const Engine& engine, ReplyHead head, size_t n_choices)
      : engine_(engine), head_(std::move(head)), choices_(n_choices) {}

  void open(size_t, const Emit&) override {}

  void on_event(size_t index, const TokenEvent& event, const Emit& emit) override {
    Choice& choice = choices_[index];
    if (event.summary) usage_.add(*event.summary);
    if (event.summary)
      head_.warnings.insert(head_.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
    if (event.finish) choice.finish = finish_reason(*event.finish);
    Json logprobs = event.logprob && head_.wants_logprobs ? logprobs_of(choice, event) : Json();
    if (!head_.is_stream) {
      choice.text += event.text;
      if (logprobs.is_object()) append(choice.logprobs, logprobs);
      return;
    }
    if (event.text.empty() && logprobs.is_null() && !event.finish) return;
    Json chunk = common();
    chunk["choices"].push_back(
        choice_json(index, event.text, std::move(logprobs), event.finish ? Json(choice.finish) : Json()));
    if (head_.include_usage) chunk["usage"] = nullptr;
    if (event.summary) add_notes(chunk);
    emit(chunk);
  }

  Json whole() override {
    Json reply = common();
    for (size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      Json logprobs = head_.wants_logprobs ? std::move(choice.logprobs) : Json();
      reply["choices"].push_back(choice_json(i, choice.text, std::move(logprobs), choice.finish));
    }
    reply["usage"] = usage_json(usage_);
    add_notes(reply);
    return reply;
  }

  void close(const Emit& emit) override {
    if (!head_.include_usage) return;
    Json last = common();
    last["usage"] = usage_json(usage_);
    emit(last);
  }

 private:
  static Json no_logprobs() {
    return {{"tokens", Json::array()},
            {"token_logprobs", Json::array()},
            {"top_logprobs", Json::array()},
            {"text_offset", Json::array()}};
  }
  struct Choice {
    std::string text;
    std::string finish;
    Json logprobs = no_logprobs();
    int64_t n_chars = 0;  // where the next token's text begins
  };

  Json common() const {
    return {{"id", head_.id},
            {"object", "text_completion"},
            {"created", head_.created},
            {"model", head_.model},
            {"system_fingerprint", head_.fingerprint},
            {"choices", Json::array()}};
  }

  static Json choice_json(size_t index, const std::string& text, Json logprobs, Json finish) {
    return {{"text", text}, {"index", index}, {"logprobs", std::move(logprobs)}, {"finish_reason", std::move(finish)}};
  }

  Json logprobs_of(Choice& choice, const TokenEvent& event) const {
    Json logprobs = no_logprobs();
    const std::string text = token_text(engine_, event.token);
    Json top = Json::object();
    for (const TokenLogprob& other : event.top_logprobs) top[token_text(engine_, other.token)] = finite(other.logprob);
    logprobs["tokens"].push_back(text);
    logprobs["token_logprobs"].push_back(finite(event.logprob->logprob));
    logprobs["top_logprobs"].push_back(std::move(top));
    logprobs["text_offset"].push_back(choice.n_chars);
    choice.n_chars += n_code_points(text);
    return logprobs;
  }

  static void append(Json& all, Json& more) {
    for (auto& [name, list] : more.items()) {
      for (Json& item : list) all[name].push_back(std::move(item));
    }
  }

  void add_notes(Json& reply) const {
    reply["timings"] = timings_json(usage_);
    if (!head_.warnings.empty()) reply["warnings"] = head_.warnings;
  }

  const Engine& engine_;
  ReplyHead head_;
  std::vector<Choice> choices_;
  ReplyUsage usage_;
};

}  // namespace

std::unique_ptr<Reply> make_completion_reply(const Engine& engine, ReplyHead head, size_t n_choices) {
  return std::make_unique<CompletionReply>(engine, std::move(head), n_choices);
}

}  // namespace candor::openai
