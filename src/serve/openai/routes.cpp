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

void answer(http::Exchange& exchange, const Error& error) {
  exchange.respond(http::error_response(error));
}

constexpr size_t kMaxTokensReply = 128u << 20;

Error reply_too_large() {
  return {ErrorKind::kInvalidInput,
          fmt::format("the reply would be larger than {} bytes; ask for less text at once, or "
                      "without with_pieces",
                      kMaxTokensReply)};
}

void answer_with(http::Exchange& exchange, Json json, const std::vector<std::string>& warnings) {
  if (!warnings.empty()) json["warnings"] = warnings;
  answer(exchange, json);
}

// The text of /tokenize.
Result<ApiRequest> parse_text(Fields& fields, const ApiLimits& limits) {
  ApiRequest result;
  check_model(fields, limits, result.model);
  result.names.prompt = fields.has("prompt") ? "prompt" : "content";
  if (!fields.has("prompt") && !fields.has("content"))
    fields.refuse("content", "content is missing, expected the text");
  TextPrompt text;
  text.text = fields.text(result.names.prompt.c_str()).value_or("");
  const bool adds_special = fields.boolean("add_special_tokens").value_or(false);
  text.add_special = fields.boolean("add_special").value_or(adds_special);
  text.parse_special = fields.boolean("parse_special").value_or(false);
  Request request;
  request.prompt = std::move(text);
  result.requests.push_back(std::move(request));
  settle_unknown(fields, limits, result.warnings);
  if (fields.fault()) return *fields.fault();
  return result;
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
      {.content_type = "text/plain; version=0.0.4", .body = metrics_.text(engine_, {faults_, bytes_, n_jobs_}, options_.read_limit)});
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

// Whatever /v1/chat/completions takes, read as it reads it: the prompt is the one that it would answer.
Result<ApiRequest> Service::read_shown_chat(const Json& body, std::initializer_list<const char*> also) const {
  auto request = parse_chat(body, options_.limits, also);
  if (request) settle_for_template(*request);
  return request;
}

// {"content": "text"} or {"prompt": "text"} or {"messages": [...]}: {"tokens": [...]}, as vLLM and llama.cpp answer.
void Service::tokenize(Exchange& exchange, const Shared&) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  const auto asked = fields.has("messages")
                         ? read_shown_chat(*body, {"with_pieces", "add_special", "add_special_tokens", "parse_special"})
                         : parse_text(fields, options_.limits);
  if (fields.fault()) return answer(exchange, *fields.fault());
  if (!asked) return answer(exchange, asked.error());
  const auto tokens = engine_.tokenize(asked->requests.front().prompt);
  if (!tokens) return answer(exchange, with_api_field(tokens.error(), asked->names));
  http::FairBudget::Share held = bytes_.share_of(exchange.request().key);
  std::string reply = "{\"tokens\":[";
  for (size_t i = 0; i < tokens->size(); ++i) {
    const TokenId id = (*tokens)[i];
    if (i > 0) reply += ',';
    reply += with_pieces ? fmt::format("{{\"id\":{},\"piece\":{}}}", id, to_text(Json(engine_.piece(id))))
                         : std::to_string(id);
    if (reply.size() > kMaxTokensReply) return answer(exchange, reply_too_large());
    if (const auto size = static_cast<int64_t>(reply.capacity()); size > held.amount()) held.resize(size);
  }
  reply += fmt::format("],\"count\":{},\"max_model_len\":{}", tokens->size(), engine_.info().n_ctx);
  if (!asked->warnings.empty()) reply += ",\"warnings\":" + to_text(Json(asked->warnings));
  reply += '}';
  exchange.respond({.body = std::move(reply)});
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
  std::vector<std::string> warnings;
  settle_unknown(fields, options_.limits, warnings);
  if (fields.fault()) return answer(exchange, *fields.fault());
  const auto text = engine_.detokenize(std::get<TokenPrompt>(prompts.front()));
  if (!text) return answer(exchange, with_api_field(text.error(), {.prompt = "tokens"}));
  answer_with(exchange, Json{{"content", *text}, {"prompt", *text}}, warnings);
}

void Service::apply_template(Exchange& exchange, const Shared&) {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  const auto asked = read_shown_chat(*body, {});
  if (!asked) return answer(exchange, asked.error());
  const auto prompt = engine_.apply_template(std::get<ChatPrompt>(asked->requests.front().prompt));
  if (!prompt) return answer(exchange, with_api_field(prompt.error(), asked->names));
  answer_with(exchange, Json{{"prompt", *prompt}}, asked->warnings);
}

}  // namespace candor::openai
