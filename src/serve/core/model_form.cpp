#include "serve/core/model_form.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "text/chat/forms/form_row.h"
#include "text/chat/forms/response_template.h"
#include "text/chat/forms/tool_form.h"

namespace candor::serve {
namespace {

constexpr const char* kTools =
    R"([{"type":"function","function":{"name":"probe_tool","description":"d","parameters":{"type":"object","properties":{}}}}])";
constexpr const char* kTextCall =
    R"({"tool_calls":[{"id":"call00001","type":"function","function":{"name":"probe_call","arguments":"probe_text"}}]})";
constexpr const char* kCall =
    R"({"tool_calls":[{"id":"call00001","type":"function","function":{"name":"probe_call","arguments":{"a":1}}}]})";

std::string rendered(const Engine& engine, std::vector<Message> messages, const char* tools) {
  ChatPrompt chat{.messages = std::move(messages), .tools_json = tools};
  auto text = engine.apply_template(chat);
  return text ? std::move(*text) : std::string();
}

bool ends_in_reasoning(const std::string& prompt) {
  return prompt.ends_with("<think>\n") || prompt.ends_with("<think>");
}

// Does the template treat the role in a way of its own? What it makes of it is held against a role that nobody knows.
bool knows_role(const Engine& engine, const std::string& role) {
  constexpr std::string_view kUnknown = "probe_role";
  const Message user{.role = "user", .content = "hi"};
  const std::string known = rendered(engine, {{.role = role, .content = "probe_words"}, user}, "");
  std::string unknown = rendered(engine, {{.role = std::string(kUnknown), .content = "probe_words"}, user}, "");
  for (size_t at = unknown.find(kUnknown); at != std::string::npos; at = unknown.find(kUnknown, at + role.size())) {
    unknown.replace(at, kUnknown.size(), role);
  }
  return known.find("probe_words") != std::string::npos && known != unknown;
}

bool holds(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// Behind the user's words and before the answer's, each where there is one, and apart from them.
bool is_separate(const std::string& prompt, const char* words) {
  const size_t at = prompt.find(words);
  const size_t asked = prompt.find("probe_asked");
  const size_t answered = prompt.find("probe_answered");
  if (at == std::string::npos || asked == std::string::npos || asked > at) return false;
  const size_t behind = asked + std::string_view("probe_asked").size();
  const bool has_mark = prompt.substr(behind, at - behind).find_first_not_of(" \t\r\n") != std::string::npos;
  return has_mark && (answered == std::string::npos || answered > at);
}

void probe_system(const Engine& engine, ModelForm& form) {
  const Message user{.role = "user", .content = "probe_asked"};
  const Message system{.role = "system", .content = "probe_words"};
  const Message answer{.role = "assistant", .content = "probe_answered"};
  const Message next{.role = "user", .content = "hi"};
  form.takes_system = holds(rendered(engine, {system, user}, ""), "probe_words");
  form.takes_late_system = is_separate(rendered(engine, {user, system}, ""), "probe_words") &&
                           is_separate(rendered(engine, {user, system, answer, next}, ""), "probe_words");
}

}  // namespace

namespace {

std::vector<text::ControlToken> control_tokens_of(const Engine& engine, const text::FormRow* row) {
  std::vector<text::ControlToken> controls;
  if (row == nullptr) return controls;
  for (const std::string_view mark : row->writing.tokens) {
    const auto tokens =
        engine.tokenize(TextPrompt{.text = std::string(mark), .add_special = false, .parse_special = true});
    if (!tokens || tokens->size() != 1) continue;
    const TokenId token = tokens->front();
    if (engine.token_bytes(token).empty() && engine.piece(token) == mark)
      controls.push_back({std::string(mark), token});
  }
  return controls;
}

}  // namespace

bool opens_reasoning(const Engine& engine, const ChatPrompt& chat) {
  const auto prompt = engine.apply_template(chat);
  return prompt && ends_in_reasoning(*prompt);
}

ModelForm probe_model_form(const Engine& engine) {
  ModelForm form;
  if (!engine.info().has_chat_template) return form;
  form.knows_developer = knows_role(engine, "developer");
  probe_system(engine, form);
  const Message user{.role = "user", .content = "hi"};
  const std::string with_tools = rendered(engine, {user}, kTools);
  form.shows_tools = holds(with_tools, "probe_tool");
  const std::string called = rendered(engine, {user, {.role = "assistant", .extra_json = kCall}}, kTools);
  const std::string texted = rendered(engine, {user, {.role = "assistant", .extra_json = kTextCall}}, kTools);
  form.takes_text_arguments = holds(texted, "probe_text") || called.empty();
  if (form.shows_tools) form.output.tools = text::tool_form_of(holds(called, "probe_call") ? called : with_tools);
  if (auto own = text::ResponseTemplate::parse(engine.info().response_template); own) {
    form.output.tools = text::ToolForm::kOwn;
    form.output.own = std::move(*own);
  } else if (!engine.info().response_template.empty()) {
    form.own_fault = own.error().message;
  }
  form.control_tokens = control_tokens_of(engine, form.output.row());
  const Message thinker{.role = "assistant", .content = "x", .extra_json = R"({"reasoning_content":"probe_thought"})"};
  const std::string plain = rendered(engine, {user}, "");
  form.output.opens_in_reasoning = ends_in_reasoning(plain);
  form.output.has_reasoning = form.output.opens_in_reasoning ||
                              text::writes_reasoning(rendered(engine, {user, thinker}, "")) ||
                              text::writes_reasoning(plain);
  return form;
}

}  // namespace candor::serve
