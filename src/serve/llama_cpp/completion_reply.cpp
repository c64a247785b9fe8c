#include "serve/llama_cpp/completion_reply.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "candor/event.h"
#include "candor/request.h"
#include "serve/core/json_body.h"
#include "serve/llama_cpp/line_cut.h"

namespace candor::serve::llama_cpp {
namespace {

constexpr int32_t kNoSlot = -1;

// "a/b" is b of a, and is called so in the result: editors look for it under that name. What is not there is left out.
Json picked(const Json& reply, const std::vector<std::string>& names) {
  Json result = Json::object();
  for (const std::string& name : names) {
    const Json* at = &reply;
    std::string_view rest = name;
    while (at != nullptr && !rest.empty()) {
      const size_t end = std::min(rest.find('/'), rest.size());
      const std::string key(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      const auto found = at->is_object() ? at->find(key) : at->end();
      at = at->is_object() && found != at->end() ? &*found : nullptr;
    }
    if (at != nullptr && !name.empty()) result[name] = *at;
  }
  return result;
}

class CompletionReply final : public Reply {
 public:
  CompletionReply(const Engine& engine, ReplyHead head, ReplyOptions options, size_t n_choices)
      : engine_(engine), head_(std::move(head)), options_(std::move(options)) {
    for (size_t i = 0; i < n_choices; ++i) choices_.emplace_back(LineCut(options_.n_indent, options_.max_predict_ms));
    asked_.resize(n_choices / std::max<size_t>(1, head_.n_per_prompt));
  }

  void open(size_t, const Emit&) override {}

  void on_event(size_t index, const TokenEvent& event, const Emit& emit) override {
    Choice& choice = choices_[index];
    const bool was_cut = is_cut(choice);
    const std::string text = take_text(choice, event);
    const bool is_kept = event.token >= 0 && !was_cut && choice.cut.reason() != CutReason::kTime;
    Json probabilities = is_kept && event.logprob ? Json::array({probability_json(event)}) : Json();
    if (is_kept) ++choice.n_tokens;
    if (event.finish) end(index, event);
    if (!head_.is_stream) {
      choice.text += text;
      if (is_kept && options_.return_tokens) choice.tokens.push_back(event.token);
      if (probabilities.is_array()) choice.probabilities.push_back(std::move(probabilities.front()));
      return;
    }
    if (is_kept || !text.empty()) {
      Json chunk = chunk_json(index, text);
      if (is_kept) chunk["tokens"].push_back(event.token);
      if (probabilities.is_array()) chunk["completion_probabilities"] = std::move(probabilities);
      emit(chunk);
    }
    if (event.summary) close_prompt(index / head_.n_per_prompt, emit);
  }

  void on_wait(const Waiting& waiting, const Emit& emit) override {
    Json chunk = chunk_json(0, "");
    if (options_.return_progress) chunk["prompt_progress"] = prompt_progress_json(waiting);
    emit(chunk);
  }

  bool has_enough() const override {
    bool is_any_cut = false;
    for (const Choice& choice : choices_) {
      if (!is_cut(choice) && choice.stop_type.empty()) return false;
      is_any_cut = is_any_cut || is_cut(choice);
    }
    return is_any_cut;
  }

  Json whole() override {
    if (!options_.as_list) return picked_whole(0);
    Json list = Json::array();
    for (size_t i = 0; i < choices_.size(); ++i) list.push_back(picked_whole(i));
    return list;
  }

  void close(const Emit&) override {}

 private:
  struct Choice {
    explicit Choice(LineCut line_cut) : cut(line_cut) {}
    LineCut cut;
    std::string text;
    std::string stop_type;  // "" as long as it goes on
    std::string stopping_word;
    Json tokens = Json::array();
    Json probabilities = Json::array();
    int64_t n_tokens = 0;
    bool is_context_full = false;
  };
  // Of one prompt.
  struct Asked {
    ReplyUsage usage{};
    std::vector<std::string> warnings{};
  };

  static bool is_cut(const Choice& choice) { return choice.cut.reason() != CutReason::kNone; }

  static std::string take_text(Choice& choice, const TokenEvent& event) {
    return event.text.substr(0, choice.cut.take(event.text, std::chrono::steady_clock::now()));
  }

  void end(size_t index, const TokenEvent& event) {
    Choice& choice = choices_[index];
    Asked& asked = asked_[index / head_.n_per_prompt];
    choice.stop_type = stop_type(choice, event);
    if (choice.stop_type == "word") choice.stopping_word = head_.stops.at(event.stop_index.value_or(0));
    choice.is_context_full = *event.finish == FinishReason::kContextFull;
    if (choice.cut.reason() == CutReason::kTime) {
      asked.warnings.push_back(fmt::format("t_max_predict_ms ended the text after {} tokens: where it ends depends on "
                                           "the machine, and is not reproducible",
                                           choice.n_tokens));
    } else if (*event.finish == FinishReason::kDeadline) {
      asked.warnings.push_back(fmt::format("a time limit ended the text after {} tokens: where it ends depends on the "
                                           "machine, and is not reproducible",
                                           choice.n_tokens));
    }
    if (!event.summary) return;
    asked.usage.add(*event.summary);
    asked.warnings.insert(asked.warnings.end(), event.summary->warnings.begin(), event.summary->warnings.end());
  }

  static const char* stop_type(const Choice& choice, const TokenEvent& event) {
    if (is_cut(choice)) return "limit";
    switch (*event.finish) {
      case FinishReason::kStopEos:
      case FinishReason::kStopId:
        return "eos";
      case FinishReason::kStopString:
        return "word";
      case FinishReason::kError:
        return "none";
      default:
        return "limit";
    }
  }

  Json probability_json(const TokenEvent& event) const {
    const bool after_chain = options_.sampling.logprobs_after_chain;
    const auto shown = [&](const TokenLogprob& token) {
      Json json = {{"id", token.token}};
      json.update(token_json(engine_, token));
      if (!after_chain) return json;
      json.erase("logprob");
      json["prob"] = std::exp(static_cast<double>(token.logprob));
      return json;
    };
    Json json = shown(*event.logprob);
    Json& top = json[after_chain ? "top_probs" : "top_logprobs"] = Json::array();
    for (const TokenLogprob& other : event.top_logprobs) top.push_back(shown(other));
    if (event.explanation) json["explain"] = explanation_json(engine_, event);
    return json;
  }

  Json chunk_json(size_t index, const std::string& content) const {
    return {{"index", index},
            {"content", content},
            {"tokens", Json::array()},
            {"stop", false},
            {"id_slot", kNoSlot},
            {"tokens_predicted", choices_[index].n_tokens}};
  }

  // The last chunks of a prompt's choices come when its figures are there.
  void close_prompt(size_t prompt, const Emit& emit) {
    for (size_t i = 0; i < head_.n_per_prompt; ++i) emit(picked_whole(prompt * head_.n_per_prompt + i));
  }

  Json picked_whole(size_t index) {
    Json json = whole_json(index);
    if (options_.fields.empty()) return json;
    Json few = picked(json, options_.fields);
    if (json.contains("warnings")) few["warnings"] = std::move(json["warnings"]);
    return few;
  }

  Json whole_json(size_t index) {
    Choice& choice = choices_[index];
    const size_t prompt = index / head_.n_per_prompt;
    const Asked& asked = asked_[prompt];
    const Usage& usage = asked.usage.usage;
    const bool is_truncated = usage.truncated_tokens > 0 || usage.cropped_tokens > 0 || choice.is_context_full;
    Json json = {{"index", index},
                 {"content", choice.text},
                 {"tokens", choice.tokens},
                 {"id_slot", kNoSlot},
                 {"stop", true},
                 {"model", head_.model},
                 {"tokens_predicted", choice.n_tokens},
                 {"tokens_evaluated", usage.prompt_tokens},
                 {"generation_settings", settings_json(options_, usage.seed)},
                 {"prompt", options_.prompts.at(prompt)},
                 {"has_new_line", choice.cut.has_new_line()},
                 {"truncated", is_truncated},
                 {"stop_type", choice.stop_type},
                 {"stopping_word", choice.stopping_word},
                 {"tokens_cached", usage.cached_tokens},
                 {"timings", timings_json(asked.usage, head_.decode_limit)}};
    if (!choice.probabilities.empty()) json["completion_probabilities"] = choice.probabilities;
    std::vector<std::string> warnings = head_.warnings;
    warnings.insert(warnings.end(), asked.warnings.begin(), asked.warnings.end());
    if (!warnings.empty()) json["warnings"] = std::move(warnings);
    return json;
  }

  const Engine& engine_;
  const ReplyHead head_;
  const ReplyOptions options_;
  std::vector<Choice> choices_;
  std::vector<Asked> asked_;  // [prompts]
};

}  // namespace

std::unique_ptr<Reply> make_completion_reply(const Engine& engine, ReplyHead head, ReplyOptions options,
                                             size_t n_choices) {
  return std::make_unique<CompletionReply>(engine, std::move(head), std::move(options), n_choices);
}

}  // namespace candor::serve::llama_cpp
