// What the simple routes answer.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/openai/service.h"

namespace candor::openai {
namespace {

void answer(http::Exchange& exchange, const Json& json) {
  exchange.respond({.body = to_text(json)});
}

void answer(http::Exchange& exchange, const ErrorInfo& error) {
  exchange.respond(http::error_response(error));
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// "%2F" and its like as the bytes that they stand for.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && hex_digit(text[i + 1]) >= 0 && hex_digit(text[i + 2]) >= 0;
    decoded.push_back(is_code ? static_cast<char>(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2])) : text[i]);
    i += is_code ? 2 : 0;
  }
  return decoded;
}

}  // namespace

void Service::health(Exchange& exchange, const Shared&) {
  exchange.respond({.body = "{\"status\":\"ok\"}"});
}

void Service::ready(Exchange& exchange, const Shared&) {
  exchange.respond({.body = "{\"status\":\"ready\"}"});
}

void Service::metrics(Exchange& exchange, const Shared&) {
  exchange.respond(
      {.content_type = "text/plain; version=0.0.4", .body = metrics_.text(engine_, n_jobs_, options_.read_limit)});
}

Json Service::model_json() const {
  const ModelInfo& info = engine_.info();
  return {{"id", options_.limits.model},
          {"object", "model"},
          {"created", created_},
          {"owned_by", "candor"},
          {"max_model_len", info.n_ctx},
          {"meta",
           {{"n_vocab", info.n_vocab},
            {"n_ctx_train", info.n_ctx_train},
            {"n_embd", info.dim},
            {"n_params", info.n_parameters},
            {"size", info.file_bytes}}}};
}

void Service::models(Exchange& exchange, const Shared&) {
  answer(exchange, Json{{"object", "list"}, {"data", Json::array({model_json()})}});
}

void Service::model(Exchange& exchange, const Shared&) {
  constexpr std::string_view kPrefix = "/v1/models/";
  const std::string name = percent_decoded(std::string_view(exchange.request().path).substr(kPrefix.size()));
  const auto& aliases = options_.limits.aliases;
  if (name == options_.limits.model || std::ranges::find(aliases, name) != aliases.end())
    return answer(exchange, model_json());
  answer(exchange, model_not_found(name));
}

void Service::chat(Exchange&, const Shared& shared) {
  generate(shared, true);
}

void Service::completions(Exchange&, const Shared& shared) {
  generate(shared, false);
}

// {"content": "text"} or {"prompt": "text"} or {"messages": [...]}: {"tokens": [...]}, as vLLM and llama.cpp answer.
void Service::tokenize(Exchange& exchange, const Shared&) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  std::string model;
  check_model(fields, options_.limits, model);
  Prompt prompt;
  if (fields.has("messages")) {
    if (auto chat = read_chat_prompt(fields)) prompt = std::move(*chat);
  } else {
    TextPrompt text;
    text.text = fields.text(fields.has("prompt") ? "prompt" : "content").value_or("");
    text.add_special = fields.boolean("add_special").value_or(fields.boolean("add_special_tokens").value_or(false));
    text.parse_special = fields.boolean("parse_special").value_or(false);
    if (!fields.has("prompt") && !fields.has("content"))
      fields.refuse("content", "content is missing, expected the text");
    prompt = std::move(text);
  }
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  if (fields.fault()) return answer(exchange, *fields.fault());
  const auto tokens = engine_.tokenize(prompt);
  if (!tokens) {
    const FieldNames names{.prompt = fields.has("messages") ? "messages" : fields.has("prompt") ? "prompt" : "content"};
    return answer(exchange, to_api_error(tokens.error(), names));
  }
  Json reply = {{"tokens", Json::array()}, {"count", tokens->size()}, {"max_model_len", engine_.info().n_ctx}};
  for (const TokenId id : *tokens) {
    reply["tokens"].push_back(with_pieces ? Json{{"id", id}, {"piece", engine_.piece(id)}} : Json(id));
  }
  answer(exchange, reply);
}

void Service::detokenize(Exchange& exchange, const Shared&) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  std::string model;
  check_model(fields, options_.limits, model);
  std::vector<Prompt> prompts = read_prompts(fields, "tokens");
  if (!fields.fault() && (prompts.size() != 1 || !std::holds_alternative<TokenPrompt>(prompts.front()))) {
    fields.refuse("tokens", "tokens is not one list of token ids");
  }
  if (fields.fault()) return answer(exchange, *fields.fault());
  const auto text = engine_.detokenize(std::get<TokenPrompt>(prompts.front()));
  if (!text) return answer(exchange, to_api_error(text.error(), {.prompt = "tokens"}));
  answer(exchange, Json{{"content", *text}, {"prompt", *text}});
}

void Service::apply_template(Exchange& exchange, const Shared&) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  std::string model;
  check_model(fields, options_.limits, model);
  const auto chat = read_chat_prompt(fields);
  if (fields.fault()) return answer(exchange, *fields.fault());
  const auto prompt = engine_.apply_template(*chat);
  if (!prompt) return answer(exchange, to_api_error(prompt.error(), {.prompt = "messages"}));
  answer(exchange, Json{{"prompt", *prompt}});
}

}  // namespace candor::openai
