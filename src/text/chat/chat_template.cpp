#include "text/chat/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "sandbox/helper_process.h"
#include "text/chat/ordered_json.h"

namespace candor::text {
namespace {

using Json = nlohmann::ordered_json;

// Deeper JSON is refused: writing and destroying it recurse.
constexpr size_t kMaxJsonDepth = 128;

using sandbox::HelperReply;
using sandbox::HelperStatus;

Error to_error(const HelperReply& reply) {
  const std::string place = reply.line == 0 ? std::string() : fmt::format(", line {}", reply.line);
  switch (reply.status) {
    case HelperStatus::kRaised:
      return {ErrorKind::kInvalidInput,
              fmt::format("messages: the model's chat template refuses them: {}", reply.text)};
    case HelperStatus::kLimit:
      return {ErrorKind::kInvalidInput, fmt::format("messages: the chat template met a limit{}: {}{}", place,
                                                    reply.is_end ? "it " : "", reply.text)};
    case HelperStatus::kInternal:
      return {ErrorKind::kInternal, fmt::format("chat template{}: {}", place, reply.text)};
    default:
      return {ErrorKind::kUnsupported, fmt::format("chat template{}: {}", place, reply.text)};
  }
}

// What a helper answered, or why there is no answer.
Result<std::string> text_of(Result<HelperReply> reply) {
  if (!reply) return fail(reply.error().kind, "chat template: " + reply.error().message);
  if (reply->status != HelperStatus::kOk) return to_error(*reply);
  return std::move(reply->text);
}

Result<Json> parse_json(std::string_view text, Json::value_t type, const std::string& name) {
  if (text.empty()) return Json(type);
  auto json = read_ordered_json(text, {.depth = kMaxJsonDepth, .keys_may_repeat = true});
  if (!json) return fail(ErrorKind::kInvalidInput, fmt::format("{}: {}", name, json.error().message));
  if (json->type() != type) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: expected a JSON {}, found {}", name, Json(type).type_name(), json->type_name()));
  }
  return std::move(*json);
}

Result<void> check_utf8(std::string_view text, const std::string& name) {
  const size_t at = first_invalid_utf8(text);
  if (at == text.size()) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: invalid UTF-8 at byte {}", name, at));
}

Result<Json> message_json(const Message& message, size_t i) {
  const std::string name = fmt::format("messages[{}]", i);
  CANDOR_TRY(check_utf8(message.role, name + ".role"));
  CANDOR_TRY(check_utf8(message.content, name + ".content"));
  CANDOR_ASSIGN(Json extra, parse_json(message.extra_json, Json::value_t::object, name));
  Json json = {{"role", message.role}, {"content", message.content}};
  auto& members = json.get_ref<Json::object_t&>();
  for (auto& [key, value] : extra.get_ref<Json::object_t&>()) {
    if (key == "role" || key == "content") {
      json[key] = std::move(value);
    } else {
      members.push_back({key, std::move(value)});
    }
  }
  return json;
}

// All strings of the value, keys too. Depth is bounded by parse_json.
void collect_strings(const Json& json, std::vector<std::string_view>& out) {
  if (json.is_string()) out.push_back(json.get_ref<const std::string&>());
  if (!json.is_structured()) return;
  if (json.is_object()) {
    for (auto it = json.begin(); it != json.end(); ++it) out.push_back(it.key());
  }
  for (const Json& item : json) collect_strings(item, out);
}

// What clients wrote: {"messages": ..., "tools": ..., further variables}.
Result<Json> client_variables(const ChatPrompt& chat) {
  CANDOR_ASSIGN(Json variables, parse_json(chat.kwargs_json, Json::value_t::object, "chat_template_kwargs"));
  constexpr std::array<std::string_view, 5> kReserved = {"messages", "tools", "add_generation_prompt", "bos_token",
                                                         "eos_token"};
  for (const std::string_view name : kReserved) {
    if (!variables.contains(name)) continue;
    return fail(ErrorKind::kInvalidInput, fmt::format("chat_template_kwargs: \"{}\" is set by the engine", name));
  }
  Json list = Json::array();
  for (size_t i = 0; i < chat.messages.size(); ++i) {
    CANDOR_ASSIGN(Json json, message_json(chat.messages[i], i));
    list.push_back(std::move(json));
  }
  variables["messages"] = std::move(list);
  CANDOR_ASSIGN(Json tools, parse_json(chat.tools_json, Json::value_t::array, "tools"));
  variables["tools"] = tools.empty() ? Json(nullptr) : std::move(tools);
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  return variables;
}

std::string to_utf8(uint32_t mark) {
  std::string text;
  append_utf8(text, mark);
  return text;
}

// All variables, and which of them the engine itself wrote. What is in no template's reach has a name that none can
// spell.
Json context_json(const Json& client, const std::vector<std::pair<std::string, std::string>>& own,
                  const std::string& mark) {
  Json context = client;
  Json own_names = Json::array();
  for (const auto& [name, piece] : own) {
    if (client.contains(name)) continue;
    context[name] = piece;
    own_names.push_back(name);
  }
  context["client texts"] = {{"mark", mark}, {"own", std::move(own_names)}};
  return context;
}

// The last message's content with a mark behind it, so that its end can be found in the rendered text.
Result<void> mark_end(Json& messages, uint32_t mark) {
  Json& content = messages.back()["content"];
  if (!content.is_string() || content.get_ref<const std::string&>().empty()) {
    return fail(ErrorKind::kInvalidInput, "messages: the last one has no text that could be continued");
  }
  content.get_ref<std::string&>() += to_utf8(mark);
  return {};
}

// The rendered text up to the last such mark.
Result<std::string_view> up_to_end(std::string_view text, uint32_t mark) {
  const size_t at = text.rfind(to_utf8(mark));
  if (at != text.npos) return text.substr(0, at);
  return fail(ErrorKind::kUnsupported,
              "messages: the model's chat template does not show the last message as it is, so it cannot be continued");
}

}  // namespace

ChatTemplate::ChatTemplate(sandbox::SharedAsset source, const Tokenizer& tokenizer, sandbox::HelperPool& helpers)
    : helpers_(&helpers), source_(std::move(source)), guard_(tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  const auto note = [&](const char* name, TokenId id) {
    if (id != kNoToken) special_pieces_.emplace_back(name, to_valid_utf8(tokenizer.piece(id)));
  };
  note("bos_token", special.bos);
  note("eos_token", special.eos);
  note("unk_token", special.unk);
  note("pad_token", special.pad);
}

Result<ChatTemplate> ChatTemplate::compile(std::string_view source, const Tokenizer& tokenizer,
                                           sandbox::HelperPool& helpers) {
  const auto asset = std::make_shared<const sandbox::HelperAsset>(
      sandbox::HelperAsset{.kind = sandbox::HelperAsset::Kind::kTemplate, .bytes = std::string(source)});
  const auto reply = helpers.compile_template(asset);
  if (reply && reply->status != HelperStatus::kOk) return to_error(*reply);
  return ChatTemplate(asset, tokenizer, helpers);
}

Result<RenderedPrompt> ChatTemplate::render(const ChatPrompt& chat, int64_t now_seconds) const {
  if (chat.messages.empty()) return fail(ErrorKind::kInvalidInput, "messages: empty; at least one is needed");
  CANDOR_ASSIGN(const Json client, client_variables(chat));
  std::vector<std::string_view> texts = {source_->bytes};
  for (const auto& [name, piece] : special_pieces_) texts.push_back(piece);
  collect_strings(client, texts);
  const uint32_t mark = choose_mark(texts);
  const std::string mark_text = to_utf8(mark);
  texts.push_back(mark_text);
  const uint32_t end = chat.continue_final ? choose_mark(texts) : mark;  // of the last message's content
  if (mark == 0 || end == 0)
    return fail(ErrorKind::kInvalidInput, "messages: they hold every private-use character of Unicode");
  Json context = context_json(client, special_pieces_, mark_text);
  if (chat.continue_final) CANDOR_TRY(mark_end(context["messages"], end));
  context["add_generation_prompt"] = chat.add_generation_prompt && !chat.continue_final;
  const std::string json = context.dump();
  const auto rendered = text_of(helpers_->render(source_, json, now_seconds));
  if (!rendered) {
    Error failure = rendered.error();
    failure.message = without_mark(failure.message, end);
    return failure;
  }
  const std::string& text = *rendered;
  std::string_view shown = text;
  if (chat.continue_final) {
    CANDOR_ASSIGN(shown, up_to_end(text, end));
  }
  GuardedText plain = guard_.read(chat.continue_final ? without_mark(shown, end) : shown, mark);
  return RenderedPrompt{std::move(plain.text), std::move(plain.breaks)};
}

Result<std::vector<TokenId>> tokenize_prompt(const Tokenizer& tokenizer, const RenderedPrompt& prompt) {
  CANDOR_ASSIGN(std::vector<TokenId> tokens,
                tokenizer.encode(prompt.text, {.add_special = false, .parse_special = true, .breaks = prompt.breaks}));
  const SpecialTokens& special = tokenizer.special();
  const bool has_bos = !tokens.empty() && tokens.front() == special.bos;
  if (special.add_bos && !has_bos) tokens.insert(tokens.begin(), special.bos);
  return tokens;
}

}  // namespace candor::text
