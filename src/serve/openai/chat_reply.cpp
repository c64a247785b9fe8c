// Replies of /v1/chat/completions.

#include <fmt/format.h>

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "serve/core/answer_reader.h"
#include "serve/core/json_body.h"
#include "serve/core/reply.h"
#include "serve/openai/reply_parts.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

class ChatReply final : public Reply {
 public:
  ChatReply(const Engine& engine, ReplyHead head, ReplyOptions options, size_t n_choices)
      : engine_(engine), head_(std::move(head)), options_(std::move(options)) {
    for (size_t i = 0; i < n_choices; ++i) choices_.emplace_back(engine, head_.form);
  }

  void open(size_t choice, const Emit& emit) override {
    emit(chunk(choice, {{"role", "assistant"}, {"content", ""}}, nullptr, nullptr));
  }

  void on_event(size_t index, const TokenEvent& event, const Emit& emit) override {
    Choice& choice = choices_[index];
    if (event.summary) {
      usage_.add(*event.summary);
      head_.warnings.insert(head_.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
    }
    if (!event.prompt_logprobs.empty()) prompt_logprobs_ = event.prompt_logprobs;
    Json logprobs;
    if (event.logprob && head_.wants_logprobs) {
      logprobs = {{"content", Json::array({logprob_json(event)})}, {"refusal", nullptr}};
    }
    Json explained = event.explanation ? explanation_json(engine_, event) : Json();
    for (Json& delta : deltas_of(choice, event, !logprobs.is_null() || !explained.is_null())) {
      take_delta(index, delta, {std::exchange(logprobs, nullptr), std::exchange(explained, nullptr)}, emit);
    }
    if (!event.finish) return;
    const char* called = options_.as_functions ? "function_call" : "tool_calls";
    choice.finish = choice.calls.empty() ? finish_reason(*event.finish) : called;
    choice.stop_reason = stop_reason(head_, event);
    if (std::string warning = choice.reader.warning(); !warning.empty()) head_.warnings.push_back(std::move(warning));
    if (head_.is_stream) emit(last_chunk(index, event.summary.has_value()));
  }

  void on_wait(const Waiting& waiting, const Emit& emit) override {
    Json waits = chunk(0, {{"content", ""}}, nullptr, nullptr);
    if (options_.return_progress) waits["prompt_progress"] = prompt_progress_json(waiting);
    emit(waits);
  }

  Json whole() override {
    Json reply = common("chat.completion");
    for (size_t i = 0; i < choices_.size(); ++i) {
      Choice& choice = choices_[i];
      Json logprobs =
          head_.wants_logprobs ? Json{{"content", std::move(choice.logprobs)}, {"refusal", nullptr}} : Json();
      reply["choices"].push_back({{"index", i},
                                  {"message", message_of(choice)},
                                  {"logprobs", std::move(logprobs)},
                                  {"finish_reason", choice.finish}});
      if (!choice.stop_reason.is_null()) reply["choices"].back()["stop_reason"] = choice.stop_reason;
      if (!choice.explained.empty()) reply["choices"].back()["explain"] = std::move(choice.explained);
    }
    if (options_.wants_prompt_logprobs) reply["prompt_logprobs"] = prompt_logprobs_json(engine_, prompt_logprobs_);
    reply["usage"] = usage_json(usage());
    add_notes(reply);
    return reply;
  }

  void close(const Emit& emit) override {
    if (!options_.include_usage) return;
    Json last = common("chat.completion.chunk");
    last["usage"] = usage_json(usage());
    emit(last);
  }

 private:
  struct Choice {
    Choice(const Engine& engine, const text::OutputForm& form) : reader(engine, form) {}
    AnswerReader reader;
    std::string text;
    std::string reasoning;
    Json calls = Json::array();
    Json logprobs = Json::array();
    Json explained = Json::array();
    std::string finish;
    Json stop_reason;
  };
  // What comes with a delta.
  struct Beside {
    Json logprobs;
    Json explained;
  };

  // What the token adds, as deltas. A logprob needs one to stand in, even if it shows nothing.
  std::vector<Json> deltas_of(Choice& choice, const TokenEvent& event, bool has_more) {
    std::vector<Json> deltas;
    for (text::OutputPiece& piece : choice.reader.take(event)) add_deltas(choice, piece, deltas);
    if (deltas.empty() && has_more) deltas.push_back({{"content", ""}});
    return deltas;
  }

  void add_deltas(Choice& choice, text::OutputPiece& piece, std::vector<Json>& deltas) {
    if (piece.kind == text::OutputPiece::Kind::kContent) {
      deltas.push_back({{"content", std::move(piece.text)}});
    } else if (piece.kind == text::OutputPiece::Kind::kReasoning) {
      deltas.push_back({{"reasoning_content", piece.text}, {"reasoning", piece.text}});
    } else if (head_.only_one_call && !choice.calls.empty()) {
      head_.warnings.push_back(left_out_call(piece.name));
    } else {
      const size_t index = choice.calls.size();
      const std::string id =
          fmt::format("call_{}_{}_{}", head_.number, choice_number(choice), index);
      choice.calls.push_back(
          {{"id", id}, {"type", "function"}, {"function", {{"name", piece.name}, {"arguments", piece.text}}}});
      if (options_.as_functions) {
        deltas.push_back({{"function_call", {{"name", piece.name}, {"arguments", ""}}}});
        return deltas.push_back({{"function_call", {{"arguments", std::move(piece.text)}}}});
      }
      Json opening = choice.calls.back();
      opening["function"]["arguments"] = "";
      opening["index"] = index;
      deltas.push_back({{"tool_calls", Json::array({std::move(opening)})}});
      const Json rest = {{"index", index}, {"function", {{"arguments", std::move(piece.text)}}}};
      deltas.push_back({{"tool_calls", Json::array({rest})}});
    }
  }

  ReplyUsage usage() const {
    ReplyUsage all = usage_;
    for (const Choice& choice : choices_) all.reasoning_tokens += choice.reader.n_reasoning_tokens();
    return all;
  }

  size_t choice_number(const Choice& choice) const { return static_cast<size_t>(&choice - choices_.data()); }

  void take_delta(size_t index, Json& delta, Beside beside, const Emit& emit) {
    if (head_.is_stream) {
      Json json = chunk(index, std::move(delta), std::move(beside.logprobs), nullptr);
      if (beside.explained.is_object()) json["choices"][0]["explain"] = Json::array({std::move(beside.explained)});
      return emit(json);
    }
    Choice& choice = choices_[index];
    if (beside.logprobs.is_object()) choice.logprobs.push_back(std::move(beside.logprobs["content"].front()));
    if (beside.explained.is_object()) choice.explained.push_back(std::move(beside.explained));
    choice.text += delta.value("content", "");
    choice.reasoning += delta.value("reasoning", "");
  }

  Json message_of(Choice& choice) const {
    Json message = {{"role", "assistant"}, {"content", std::move(choice.text)}, {"refusal", nullptr}};
    if (!choice.reasoning.empty()) message["reasoning_content"] = message["reasoning"] = choice.reasoning;
    if (choice.calls.empty()) return message;
    if (message["content"] == "") message["content"] = nullptr;
    if (options_.as_functions) {
      message["function_call"] = std::move(choice.calls[0]["function"]);
    } else {
      message["tool_calls"] = std::move(choice.calls);
    }
    return message;
  }

  Json common(const char* object) const {
    return {{"id", head_.id},
            {"object", object},
            {"created", head_.created},
            {"model", head_.model},
            {"system_fingerprint", head_.fingerprint},
            {"choices", Json::array()}};
  }

  // Without logprobs there is no such member: the API's description knows no null there.
  Json chunk(size_t index, Json delta, Json logprobs, Json finish) const {
    Json choice = {{"index", index}, {"delta", std::move(delta)}, {"finish_reason", std::move(finish)}};
    if (logprobs.is_object()) choice["logprobs"] = std::move(logprobs);
    Json reply = common("chat.completion.chunk");
    reply["choices"].push_back(std::move(choice));
    if (options_.include_usage) reply["usage"] = nullptr;
    return reply;
  }

  Json last_chunk(size_t index, bool is_last) const {
    Json reply = chunk(index, Json::object(), nullptr, choices_[index].finish);
    if (!choices_[index].stop_reason.is_null()) reply["choices"][0]["stop_reason"] = choices_[index].stop_reason;
    if (is_last) add_notes(reply);
    return reply;
  }

  void add_notes(Json& reply) const {
    reply["timings"] = timings_json(usage_, head_.decode_limit);
    if (!head_.warnings.empty()) reply["warnings"] = head_.warnings;
  }

  Json logprob_json(const TokenEvent& event) const {
    Json json = token_json(engine_, *event.logprob);
    json["top_logprobs"] = Json::array();
    for (const TokenLogprob& top : event.top_logprobs) json["top_logprobs"].push_back(token_json(engine_, top));
    return json;
  }

  const Engine& engine_;
  ReplyHead head_;
  const ReplyOptions options_;
  std::vector<Choice> choices_;
  std::vector<PromptLogprob> prompt_logprobs_;
  ReplyUsage usage_;
};

}  // namespace

std::unique_ptr<Reply> make_chat_reply(const Engine& engine, ReplyHead head, ReplyOptions options, size_t n_choices) {
  return std::make_unique<ChatReply>(engine, std::move(head), std::move(options), n_choices);
}

}  // namespace candor::serve::openai
