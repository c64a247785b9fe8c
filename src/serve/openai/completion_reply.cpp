// Replies of /v1/completions.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/openai/reply_parts.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

int64_t n_code_points(const std::string& text) {
  return std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

Json no_logprobs() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

void append(Json& all, Json& more) {
  for (auto& [name, list] : more.items()) {
    for (Json& item : list) all[name].push_back(std::move(item));
  }
}

class CompletionReply final : public Reply {
 public:
  CompletionReply(const Engine& engine, ReplyHead head, ReplyOptions options, size_t n_choices)
      : engine_(engine),
        head_(std::move(head)),
        options_(std::move(options)),
        choices_(n_choices),
        prompt_logprobs_(n_choices / std::max<size_t>(1, head_.n_per_prompt)) {}

  void open(size_t, const Emit&) override {}

  void on_event(size_t index, const TokenEvent& event, const Emit& emit) override {
    Choice& choice = choices_[index];
    take_notes(index, event);
    std::string text = event.text;
    Json logprobs = head_.wants_logprobs ? no_logprobs() : Json();
    if (!options_.echoed.empty() && !std::exchange(choice.has_begun, true)) {
      text.insert(0, options_.echoed[index / head_.n_per_prompt].text);
      if (head_.wants_logprobs) add_echo(index, logprobs);
    }
    if (event.logprob && head_.wants_logprobs) add_token(choice, event, logprobs);
    Json explained = event.explanation ? Json::array({explanation_json(engine_, event)}) : Json();
    if (!head_.is_stream) {
      choice.text += text;
      if (head_.wants_logprobs) append(choice.logprobs, logprobs);
      if (explained.is_array()) choice.explained.push_back(std::move(explained.front()));
      return;
    }
    const bool has_logprobs = head_.wants_logprobs && !logprobs["tokens"].empty();
    if (text.empty() && !has_logprobs && explained.is_null() && !event.finish) return;
    Json chunk = common();
    Json shown = choice_json(index, text, has_logprobs ? std::move(logprobs) : Json(),
                             event.finish ? Json(choice.finish) : Json());
    if (!choice.stop_reason.is_null()) shown["stop_reason"] = choice.stop_reason;
    if (explained.is_array()) shown["explain"] = std::move(explained);
    chunk["choices"].push_back(std::move(shown));
    if (options_.include_usage) chunk["usage"] = nullptr;
    if (event.summary) add_notes(chunk);
    emit(chunk);
  }

  void on_wait(const Waiting& waiting, const Emit& emit) override {
    Json waits = common();
    waits["choices"].push_back(choice_json(0, "", nullptr, nullptr));
    if (options_.return_progress) waits["prompt_progress"] = prompt_progress_json(waiting);
    emit(waits);
  }

  Json whole() override {
    Json reply = common();
    for (size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      Json logprobs = head_.wants_logprobs ? std::move(choice.logprobs) : Json();
      Json shown = choice_json(i, choice.text, std::move(logprobs), choice.finish);
      if (!choice.stop_reason.is_null()) shown["stop_reason"] = choice.stop_reason;
      if (!choice.explained.empty()) shown["explain"] = std::move(choice.explained);
      if (options_.wants_prompt_logprobs) {
        shown["prompt_logprobs"] = prompt_logprobs_json(engine_, prompt_logprobs_[i / head_.n_per_prompt]);
      }
      reply["choices"].push_back(std::move(shown));
    }
    reply["usage"] = usage_json(usage_);
    add_notes(reply);
    return reply;
  }

  void close(const Emit& emit) override {
    if (!options_.include_usage) return;
    Json last = common();
    last["usage"] = usage_json(usage_);
    emit(last);
  }

 private:
  struct Choice {
    std::string text;
    std::string finish;
    Json stop_reason;
    Json logprobs = no_logprobs();
    Json explained = Json::array();
    int64_t n_chars = 0;  // where the next token's text begins
    bool has_begun = false;
  };

  void take_notes(size_t index, const TokenEvent& event) {
    if (!event.prompt_logprobs.empty()) prompt_logprobs_[index / head_.n_per_prompt] = event.prompt_logprobs;
    if (event.finish) {
      choices_[index].finish = finish_reason(*event.finish);
      choices_[index].stop_reason = stop_reason(head_, event);
    }
    if (!event.summary) return;
    usage_.add(*event.summary);
    head_.warnings.insert(head_.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
  }

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

  // By text, the token itself among them even where it is not of the likeliest.
  Json top_json(const TokenLogprob& token, const std::vector<TokenLogprob>& top) const {
    Json json = Json::object();
    for (const TokenLogprob& other : top) json[token_text(engine_, other.token)] = finite_logprob(other.logprob);
    json[token_text(engine_, token.token)] = finite_logprob(token.logprob);
    return json;
  }

  void add_token(Choice& choice, const TokenEvent& event, Json& logprobs) const {
    const std::string text = token_text(engine_, event.token);
    logprobs["tokens"].push_back(text);
    logprobs["token_logprobs"].push_back(finite_logprob(event.logprob->logprob));
    logprobs["top_logprobs"].push_back(top_json(*event.logprob, event.top_logprobs));
    logprobs["text_offset"].push_back(choice.n_chars);
    choice.n_chars += n_code_points(text);
  }

  // Nothing comes before the first token, so that it has no logprob. Where the tokens' bytes are more than the text (a
  // space that the tokenizer puts before it), the first one takes the difference.
  void add_echo(size_t index, Json& logprobs) {
    const EchoedPrompt& echoed = options_.echoed[index / head_.n_per_prompt];
    const std::vector<PromptLogprob>& scored = prompt_logprobs_[index / head_.n_per_prompt];
    int64_t n_of_tokens = 0;
    const auto length = [this](TokenId token) { return n_code_points(to_valid_utf8(engine_.token_bytes(token))); };
    for (const TokenId token : echoed.tokens) n_of_tokens += length(token);
    const int64_t n_text = n_code_points(echoed.text);
    int64_t at = n_text - n_of_tokens;
    for (size_t i = 0; i < echoed.tokens.size(); ++i) {
      const bool has_logprob = i > 0 && i <= scored.size();
      logprobs["tokens"].push_back(token_text(engine_, echoed.tokens[i]));
      logprobs["token_logprobs"].push_back(has_logprob ? Json(finite_logprob(scored[i - 1].logprob.logprob)) : Json());
      logprobs["top_logprobs"].push_back(has_logprob ? top_json(scored[i - 1].logprob, scored[i - 1].top) : Json());
      logprobs["text_offset"].push_back(std::max<int64_t>(0, at));
      at += length(echoed.tokens[i]);
    }
    choices_[index].n_chars = n_text;
  }

  void add_notes(Json& reply) const {
    reply["timings"] = timings_json(usage_, head_.decode_limit);
    if (!head_.warnings.empty()) reply["warnings"] = head_.warnings;
  }

  const Engine& engine_;
  ReplyHead head_;
  const ReplyOptions options_;
  std::vector<Choice> choices_;
  std::vector<std::vector<PromptLogprob>> prompt_logprobs_;  // [prompts]
  ReplyUsage usage_;
};

}  // namespace

std::unique_ptr<Reply> make_completion_reply(const Engine& engine, ReplyHead head, ReplyOptions options,
                                             size_t n_choices) {
  return std::make_unique<CompletionReply>(engine, std::move(head), std::move(options), n_choices);
}

}  // namespace candor::serve::openai
