#include "serve/openai/text_routes.h"

#include <fmt/format.h>

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/utf8.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/request_terms.h"
#include "serve/http/fair_budget.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

constexpr size_t kMaxTokensReply = 128u << 20;

Error reply_too_large() {
  return {ErrorKind::kInvalidInput,
          fmt::format("the reply would be larger than {} bytes; ask for less text at once, or without with_pieces",
                      kMaxTokensReply)};
}

// The token's text, or its bytes where they are none by themselves; a control token as the vocabulary writes it.
Json piece_json(const Engine& engine, TokenId id) {
  const std::string_view bytes = engine.token_bytes(id);
  if (bytes.empty()) return engine.piece(id);
  if (first_invalid_utf8(bytes) == bytes.size()) return bytes;
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<unsigned char>(byte));
  return list;
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

// As /v1/chat/completions reads it; also: further fields, which the route itself reads.
Result<ApiRequest> read_chat(const RequestTerms& terms, const Json& body,
                             std::initializer_list<const char*> also = {}) {
  auto request = parse_chat(body, terms, also);
  if (request) terms.settle(*request);
  return request;
}

}  // namespace

void TextRoutes::tokenize(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  const bool with_pieces = fields.boolean("with_pieces").value_or(false);
  const auto asked =
      fields.has("messages")
          ? read_chat(core_.terms, *body, {"with_pieces", "add_special", "add_special_tokens", "parse_special"})
          : parse_text(fields, core_.limits());
  if (fields.fault()) return answer(exchange, *fields.fault());
  if (!asked) return answer(exchange, asked.error());
  const auto tokens = core_.engine.tokenize(asked->requests.front().prompt);
  if (!tokens) return answer(exchange, with_api_field(tokens.error(), asked->names));
  http::FairBudget::Share held = core_.bytes.share_of(exchange.request().key);
  std::string reply = "{\"tokens\":[";
  for (size_t i = 0; i < tokens->size(); ++i) {
    const TokenId id = (*tokens)[i];
    if (i > 0) reply += ',';
    reply += with_pieces ? fmt::format("{{\"id\":{},\"piece\":{}}}", id, to_text(piece_json(core_.engine, id)))
                         : std::to_string(id);
    if (reply.size() > kMaxTokensReply) return answer(exchange, reply_too_large());
    if (const auto size = static_cast<int64_t>(reply.capacity()); size > held.amount()) held.resize(size);
  }
  reply += fmt::format("],\"count\":{},\"max_model_len\":{}", tokens->size(), core_.engine.info().n_ctx);
  if (!asked->warnings.empty()) reply += ",\"warnings\":" + to_text(Json(asked->warnings));
  reply += '}';
  exchange.respond({.body = std::move(reply)});
}

void TextRoutes::detokenize(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  Fields fields(*body);
  std::string model;
  check_model(fields, core_.limits(), model);
  std::vector<Prompt> prompts = read_prompts(fields, "tokens");
  if (!fields.fault() && (prompts.size() != 1 || !std::holds_alternative<TokenPrompt>(prompts.front()))) {
    fields.refuse("tokens", "tokens is not one list of token ids");
  }
  std::vector<std::string> warnings;
  settle_unknown(fields, core_.limits(), warnings);
  if (fields.fault()) return answer(exchange, *fields.fault());
  const auto text = core_.engine.detokenize(std::get<TokenPrompt>(prompts.front()));
  if (!text) return answer(exchange, with_api_field(text.error(), {.prompt = "tokens"}));
  answer_with(exchange, Json{{"content", *text}, {"prompt", *text}}, warnings);
}

void TextRoutes::apply_template(http::Exchange& exchange) const {
  const auto body = parse_body(exchange.request().body);
  if (!body) return answer(exchange, body.error());
  const auto asked = read_chat(core_.terms, *body);
  if (!asked) return answer(exchange, asked.error());
  const auto prompt = core_.engine.apply_template(std::get<ChatPrompt>(asked->requests.front().prompt));
  if (!prompt) return answer(exchange, with_api_field(prompt.error(), asked->names));
  answer_with(exchange, Json{{"prompt", *prompt}}, asked->warnings);
}

void TextRoutes::tokenizer_info(http::Exchange& exchange) const {
  const ModelInfo& info = core_.engine.info();
  const auto written = [this](TokenId token) { return token < 0 ? Json() : Json(core_.engine.piece(token)); };
  answer(exchange, Json{{"eos_token", written(info.eos)},
                        {"bos_token", written(info.bos)},
                        {"pad_token", written(info.pad)},
                        {"chat_template", info.chat_template.empty() ? Json() : Json(info.chat_template)},
                        {"add_bos_token", info.adds_bos},
                        {"n_vocab", info.n_vocab}});
}

}  // namespace candor::serve::openai
