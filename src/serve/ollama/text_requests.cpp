// POST /api/chat and /api/generate, from JSON to an engine request.

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/infill_prompt.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/reply.h"
#include "serve/core/request_terms.h"
#include "serve/ollama/replies.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

std::string json_or_nothing(const Json& value) {
  return value.empty() ? std::string() : to_text(value);
}

void read_tools(Fields& fields, ChatPrompt& chat, ApiRequest& result) {
  const Json* tools = fields.array("tools");
  if (tools == nullptr || tools->empty()) return;
  if (std::string fault = fault_of_tools(*tools); !fault.empty()) return fields.refuse("tools", std::move(fault));
  result.has_tools = true;
  chat.tools_json = to_text(*tools);
}

// What a text of old was, to be gone on with.
TokenPrompt read_context(Fields& fields) {
  TokenPrompt context;
  const Json* ids = fields.array("context");
  if (ids == nullptr) return context;
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > uint64_t{std::numeric_limits<int32_t>::max()}) {
      fields.refuse("context", fmt::format("context holds {}, expected the token ids of an earlier reply", shown(id)));
      return {};
    }
    context.push_back(id.get<TokenId>());
  }
  return context;
}

// Templates come from the model's file.
void refuse_what_is_not_offered(Fields& fields) {
  if (!fields.text("template").value_or("").empty())
    fields.refuse("template", "template is not taken from a request: the model's own is used, or none with raw: true");
}

bool has_images(Fields& fields) {
  const Json* images = fields.array("images");
  return images != nullptr && !images->empty();
}

// The images stand before the text.
Prompt text_prompt(Message message, bool is_raw) {
  std::string marks;
  for (size_t i = 0; i < message.images.size(); ++i) marks += kImageMark;
  return TextPrompt{.text = marks + message.content, .parse_special = is_raw, .images = std::move(message.images)};
}

// Who asks raw writes the whole prompt, its control tokens as well.
Prompt read_prompt(Fields& fields, const RequestTerms& terms, const Json& kwargs) {
  const Engine& engine = terms.engine();
  ImageFiles files(terms.limits());
  MessageParts parts;
  read_images(fields, files, parts);
  parts.add_text(fields.text("prompt").value_or(""));
  const std::string system = fields.text("system").value_or("");
  const bool is_raw = fields.boolean("raw").value_or(false);
  if (is_raw && !system.empty()) fields.refuse("system", "system has no place in raw mode, which knows no template");
  Message user = parts.to_user_message();
  if (is_raw || (system.empty() && !engine.info().has_chat_template)) return text_prompt(std::move(user), is_raw);
  ChatPrompt chat;
  if (!system.empty()) chat.messages.push_back({.role = "system", .content = system});
  chat.messages.push_back(std::move(user));
  chat.kwargs_json = json_or_nothing(kwargs);
  return chat;
}

// The gap between prompt and suffix, which the model is to fill in.
void read_gap(Fields& fields, const Engine& engine, ApiRequest& result, Request& request) {
  InfillTexts texts{.prefix = fields.text("prompt").value_or(""),
                    .suffix = fields.text("suffix").value_or(""),
                    .names = {.prefix = "prompt", .suffix = "suffix"}};
  if (!engine.info().fim.exist())
    fields.refuse("suffix", fmt::format("\"{}\" does not support insert", clipped(result.model)));
  if (!fields.text("system").value_or("").empty() || fields.boolean("raw").value_or(false))
    fields.refuse("suffix", "suffix goes with neither system nor raw: its prompt has a form of its own");
  if (const Json* context = fields.array("context"); context != nullptr && !context->empty())
    fields.refuse("context", "context has no place beside suffix");
  if (has_images(fields)) fields.refuse("images", "images have no place beside suffix");
  if (fields.fault()) return;
  auto tokens = infill_prompt(engine, texts, request.sampling, result.warnings);
  if (!tokens) return fields.refuse_with(tokens.error());
  request.prompt = std::move(*tokens);
}

// The prompt's tokens, which the reply shows; behind a context it is them that are read. Tokens alone say nothing of
// images: of a prompt with images none are shown.
Result<std::optional<TokenPrompt>> settle_context(const Engine& engine, TokenPrompt context, bool has_images,
                                                  Request& request) {
  if (has_images && context.empty()) return std::optional<TokenPrompt>();
  if (has_images) return fail(ErrorKind::kInvalidInput, "context has no place beside images: send messages", "context");
  CANDOR_ASSIGN(TokenPrompt tokens, engine.tokenize(request.prompt));
  if (context.empty()) return std::optional(std::move(tokens));
  const bool begins_anew = engine.info().bos >= 0 && !tokens.empty() && tokens.front() == engine.info().bos;
  context.insert(context.end(), tokens.begin() + (begins_anew ? 1 : 0), tokens.end());
  request.prompt = context;
  return std::optional(std::move(context));
}

// What both have: a reply that asks for nothing to be written.
std::optional<Result<IdleReply>> idle_text_reply(const Json& body, const ApiLimits& limits, bool is_chat,
                                                 bool is_idle) {
  if (!is_idle) return std::nullopt;
  Fields fields(body);
  std::vector<std::string> warnings;
  const std::string model = read_model(fields, limits);
  const auto keep_alive = read_keep_alive(fields, limits, warnings);
  if (fields.fault()) return Result<IdleReply>(*fields.fault());
  Json reply = idle_reply(model, is_chat, keep_alive == 0.0);
  if (!warnings.empty()) reply["warnings"] = warnings;
  return Result<IdleReply>(IdleReply{std::move(reply), keep_alive});
}

}  // namespace

std::optional<Result<IdleReply>> idle_chat_reply(const Json& body, const ApiLimits& limits) {
  const auto messages = body.find("messages");
  const bool is_idle = messages == body.end() || messages->is_null() || (messages->is_array() && messages->empty());
  return idle_text_reply(body, limits, true, is_idle);
}

std::optional<Result<IdleReply>> idle_generate_reply(const Json& body, const ApiLimits& limits) {
  const auto prompt = body.find("prompt");
  const auto suffix = body.find("suffix");
  const bool has_gap = suffix != body.end() && !suffix->is_null() && *suffix != "";
  const auto images = body.find("images");
  const bool shows = images != body.end() && !images->is_null() && !images->empty();
  const bool is_idle = !has_gap && !shows && (prompt == body.end() || prompt->is_null() || *prompt == "");
  return idle_text_reply(body, limits, false, is_idle);
}

Result<ApiRequest> parse_chat(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  ApiRequest result;
  result.names.prompt = "messages";
  Request request;
  Json kwargs = Json::object();
  read_common(fields, terms, result, request, kwargs);
  if (auto messages = read_messages(fields, terms, result.warnings)) {
    ChatPrompt chat{.messages = std::move(*messages), .kwargs_json = json_or_nothing(kwargs)};
    read_tools(fields, chat, result);
    request.prompt = std::move(chat);
  }
  fields.accept({"name"});
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  result.requests.push_back(std::move(request));
  result.make_reply = [](const Engine& engine, ReplyHead head, size_t) {
    return make_chat_reply(engine, std::move(head));
  };
  return result;
}

Result<ApiRequest> parse_generate(const Json& body, const RequestTerms& terms) {
  Fields fields(body);
  ApiRequest result;
  Request request;
  Json kwargs = Json::object();
  read_common(fields, terms, result, request, kwargs);
  refuse_what_is_not_offered(fields);
  TokenPrompt context;
  if (fields.text("suffix").value_or("").empty()) {
    context = read_context(fields);
    request.prompt = read_prompt(fields, terms, kwargs);
  } else {
    read_gap(fields, terms.engine(), result, request);
  }
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  auto tokens = settle_context(terms.engine(), std::move(context), has_images(fields), request);
  if (!tokens) return with_api_field(tokens.error(), result.names);
  result.requests.push_back(std::move(request));
  result.make_reply = [tokens = std::move(*tokens)](const Engine& engine, ReplyHead head, size_t) {
    return make_generate_reply(engine, std::move(head), tokens);
  };
  return result;
}

}  // namespace candor::serve::ollama
