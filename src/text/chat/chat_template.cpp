#include "text/chat/chat_template.h"

#include <candor_bridge.h>
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/utf8.h"

namespace candor::text {
namespace {

using Json = nlohmann::ordered_json;

// Deeper JSON is refused: writing and destroying it recurse.
constexpr int kMaxJsonDepth = 128;

candor_bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The bridge's error, freed with its owner.
struct BridgeError : candor_error {
  BridgeError() : candor_error{} {}
  BridgeError(const BridgeError&) = delete;
  BridgeError& operator=(const BridgeError&) = delete;
  ~BridgeError() { candor_error_clear(this); }
  std::string_view words() const { return {message.data, message.size}; }
};

Error to_error(const BridgeError& error) {
  const std::string place = error.line == 0 ? std::string() : fmt::format(", line {}", error.line);
  switch (error.status) {
    case CANDOR_RAISED:
      return {ErrorKind::kInvalidInput,
              fmt::format("messages: the model's chat template refuses them: {}", error.words())};
    case CANDOR_LIMIT:
      return {ErrorKind::kInvalidInput,
              fmt::format("messages: the chat template met a limit{}: {}", place, error.words())};
    case CANDOR_INTERNAL:
      return {ErrorKind::kInternal, fmt::format("chat template{}: {}", place, error.words())};
    default:
      return {ErrorKind::kUnsupported, fmt::format("chat template{}: {}", place, error.words())};
  }
}

// Brackets that are open at once, outside strings.
int json_depth(std::string_view text) {
  int depth = 0;
  int deepest = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\') ++at;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ']' || c == '}') --depth;
  }
  return deepest;
}

Expected<Json> parse_json(std::string_view text, Json::value_t type, const std::string& name) {
  if (text.empty()) return Json(type);
  if (json_depth(text) > kMaxJsonDepth) {
    return fail(ErrorKind::kInvalidInput, fmt::format("{}: nested deeper than {}", name, kMaxJsonDepth));
  }
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(ErrorKind::kInvalidInput, fmt::format("{}: not valid JSON", name));
  if (json.type() != type) {
    return fail(ErrorKind::kInvalidInput,
                fmt::format("{}: expected a JSON {}, found {}", name, Json(type).type_name(), json.type_name()));
  }
  return json;
}

Expected<void> check_utf8(std::string_view text, const std::string& name) {
  const size_t at = first_invalid_utf8(text);
  if (at == text.size()) return {};
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: invalid UTF-8 at byte {}", name, at));
}

Expected<Json> message_json(const ChatMessage& message, size_t i) {
  const std::string name = fmt::format("messages[{}]", i);
  CANDOR_TRY(check_utf8(message.role, name + ".role"));
  CANDOR_TRY(check_utf8(message.content, name + ".content"));
  CANDOR_ASSIGN(const Json extra, parse_json(message.extra_json, Json::value_t::object, name));
  Json json = {{"role", message.role}, {"content", message.content}};
  for (const auto& [key, value] : extra.items()) json[key] = value;
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

Json with_marks(const Json& json, const ControlGuard& guard, uint32_t mark) {
  if (json.is_string()) return guard.with_marks(json.get_ref<const std::string&>(), mark);
  if (json.is_array()) {
    Json marked = Json::array();
    for (const Json& item : json) marked.push_back(with_marks(item, guard, mark));
    return marked;
  }
  if (!json.is_object()) return json;
  Json marked = Json::object();
  for (auto it = json.begin(); it != json.end(); ++it) {
    marked[guard.with_marks(it.key(), mark)] = with_marks(it.value(), guard, mark);
  }
  return marked;
}

// What clients wrote: {"messages": ..., "tools": ..., further variables}.
Expected<Json> client_variables(std::span<const ChatMessage> messages, const RenderOptions& options) {
  CANDOR_ASSIGN(Json variables, parse_json(options.kwargs_json, Json::value_t::object, "chat_template_kwargs"));
  constexpr std::array<std::string_view, 5> kReserved = {"messages", "tools", "add_generation_prompt", "bos_token",
                                                         "eos_token"};
  for (const std::string_view name : kReserved) {
    if (!variables.contains(name)) continue;
    return fail(ErrorKind::kInvalidInput, fmt::format("chat_template_kwargs: \"{}\" is set by the engine", name));
  }
  Json list = Json::array();
  for (size_t i = 0; i < messages.size(); ++i) {
    CANDOR_ASSIGN(Json json, message_json(messages[i], i));
    list.push_back(std::move(json));
  }
  variables["messages"] = std::move(list);
  CANDOR_ASSIGN(Json tools, parse_json(options.tools_json, Json::value_t::array, "tools"));
  variables["tools"] = tools.empty() ? Json(nullptr) : std::move(tools);
  if (!variables.contains("documents")) variables["documents"] = nullptr;
  return variables;
}

std::string to_utf8(uint32_t mark) {
  std::string text;
  append_utf8(text, mark);
  return text;
}

// The last message's content with a mark behind it, so that its end can be found in the rendered text.
Expected<void> mark_end(Json& messages, uint32_t mark) {
  Json& content = messages.back()["content"];
  if (!content.is_string() || content.get_ref<const std::string&>().empty()) {
    return fail(ErrorKind::kInvalidInput, "messages: the last one has no text that could be continued");
  }
  content.get_ref<std::string&>() += to_utf8(mark);
  return {};
}

// The rendered text up to the last such mark.
Expected<std::string_view> up_to_end(std::string_view text, uint32_t mark) {
  const size_t at = text.rfind(to_utf8(mark));
  if (at != text.npos) return text.substr(0, at);
  return fail(ErrorKind::kUnsupported,
              "messages: the model's chat template does not show the last message as it is, so it cannot be continued");
}

}  // namespace

void ChatTemplate::Free::operator()(candor_template* handle) const {
  candor_template_free(handle);
}

ChatTemplate::ChatTemplate(candor_template* handle, std::string_view source, const Tokenizer& tokenizer)
    : handle_(handle), source_(source), guard_(tokenizer) {
  const SpecialTokens& special = tokenizer.special();
  const auto note = [&](const char* name, TokenId id) {
    if (id != kNoToken) special_pieces_.emplace_back(name, to_valid_utf8(tokenizer.piece(id)));
  };
  note("bos_token", special.bos);
  note("eos_token", special.eos);
  note("unk_token", special.unk);
  note("pad_token", special.pad);
}

Expected<ChatTemplate> ChatTemplate::compile(std::string_view source, const Tokenizer& tokenizer) {
  candor_template* handle = nullptr;
  BridgeError error;
  if (candor_template_compile(as_bytes(source), &handle, &error) != CANDOR_OK) return fail(to_error(error));
  return ChatTemplate(handle, source, tokenizer);
}

Expected<RenderedPrompt> ChatTemplate::render(std::span<const ChatMessage> messages,
                                              const RenderOptions& options) const {
  if (messages.empty()) return fail(ErrorKind::kInvalidInput, "messages: empty; at least one is needed");
  CANDOR_ASSIGN(const Json client, client_variables(messages, options));
  std::vector<std::string_view> texts = {source_};
  for (const auto& [name, piece] : special_pieces_) texts.push_back(piece);
  collect_strings(client, texts);
  const uint32_t mark = choose_mark(texts);
  const std::string mark_text = to_utf8(mark);
  texts.push_back(mark_text);
  const uint32_t end = options.continue_final ? choose_mark(texts) : mark;  // of the last message's content
  if (mark == 0 || end == 0)
    return fail(ErrorKind::kInvalidInput, "messages: they hold every private-use character of Unicode");
  Json context = Json::object();
  for (const auto& [name, piece] : special_pieces_) context[name] = piece;
  for (auto it = client.begin(); it != client.end(); ++it) context[it.key()] = with_marks(it.value(), guard_, mark);
  if (options.continue_final) CANDOR_TRY(mark_end(context["messages"], end));
  context["add_generation_prompt"] = options.add_generation_prompt && !options.continue_final;
  const std::string json = context.dump();
  candor_text rendered{};
  BridgeError error;
  const candor_status status =
      candor_template_render(handle_.get(), as_bytes(json), options.now_seconds, &rendered, &error);
  if (status != CANDOR_OK) {
    Error failure = to_error(error);
    failure.message = without_marks(without_marks(failure.message, mark).text, end).text;
    return fail(std::move(failure));
  }
  const std::string text(rendered.data, rendered.size);
  candor_text_free(&rendered);
  std::string_view shown = text;
  if (options.continue_final) {
    CANDOR_ASSIGN(shown, up_to_end(text, end));
  }
  UnmarkedText plain = without_marks(shown, mark);
  return RenderedPrompt{std::move(plain.text), std::move(plain.breaks)};
}

std::vector<TokenId> tokenize_prompt(const Tokenizer& tokenizer, const RenderedPrompt& prompt) {
  std::vector<TokenId> tokens =
      tokenizer.encode(prompt.text, {.add_special = false, .parse_special = true, .breaks = prompt.breaks});
  const SpecialTokens& special = tokenizer.special();
  const bool has_bos = !tokens.empty() && tokens.front() == special.bos;
  if (special.add_bos && !has_bos) tokens.insert(tokens.begin(), special.bos);
  return tokens;
}

}  // namespace candor::text
