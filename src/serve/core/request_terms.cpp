#include "serve/core/request_terms.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "text/chat/forms/call_grammar.h"
#include "text/chat/forms/form_row.h"
#include "text/chat/forms/tool_form.h"
#include "text/chat/forms/tool_types.h"

namespace candor::serve {
namespace {

// A tool says that its calls must obey its schema.
bool has_strict_tool(const std::string& tools_json) {
  // Sorted keys: ordered ones cost the square of their number.
  const auto tools = nlohmann::json::parse(tools_json, nullptr, false);
  for (const auto& tool : tools) {
    const auto& function = tool.contains("function") ? tool["function"] : tool;
    if (function.is_object() && function.contains("strict") && function["strict"] == true) return true;
  }
  return false;
}

void add_note(ApiRequest& request, const std::string& words) {
  request.note += (request.note.empty() ? "" : ", ") + words;
}

}  // namespace

void RequestTerms::settle_calls(ApiRequest& request) const {
  Request& first = request.requests.front();
  const auto* chat = std::get_if<ChatPrompt>(&first.prompt);
  const bool is_strict = chat != nullptr && request.has_tools && !request.must_call && !first.constraint &&
                         has_strict_tool(chat->tools_json);
  if (is_strict) {
    request.wish = text::CallWish{
        .tools_json = chat->tools_json, .may_repeat = request.parallel_tool_calls, .may_be_text = true};
  }
  const text::FormRow* row = form_.output.row();
  const std::string name(text::to_string(form_.output.tools));
  if (chat == nullptr || !request.wish) {
    if (request.has_tools && row != nullptr && !first.constraint) add_note(request, "calls read in the form " + name);
    return;
  }
  auto grammar = row != nullptr
                     ? text::call_grammar(*row, *request.wish, form_.control_tokens)
                     : Result<std::string>(Error{ErrorKind::kUnsupported, "the model has no form of its own"});
  if (grammar) {
    const bool refuses_idle = first.constraint && first.constraint->is_strict;
    first.constraint =
        ConstraintSpec{.kind = GrammarKind::kLark, .source = std::move(*grammar), .is_strict = refuses_idle};
    request.names.constraint = "tools";
    request.is_in_own_form = true;
    return add_note(request, fmt::format("calls held to the form {}", name));
  }
  const std::string& reason = grammar.error().message;
  if (request.must_call) add_note(request, fmt::format("call forced as JSON: {}", reason));
  if (is_strict) {
    request.warnings.push_back(fmt::format("strict has no effect in the form {}: {}", name, reason));
  } else if (row != nullptr) {
    request.warnings.push_back(fmt::format("the call is forced as JSON, not in the form {}: {}", name, reason));
  }
}

void RequestTerms::settle(ApiRequest& request) const {
  settle_calls(request);
  if (request.has_tools && !form_.shows_tools)
    request.warnings.push_back("the model's chat template does not show tools to the model");
  bool was_developer = false;
  for (Request& one : request.requests) {
    auto* chat = std::get_if<ChatPrompt>(&one.prompt);
    if (chat == nullptr || form_.knows_developer) continue;
    for (Message& message : chat->messages) {
      if (message.role != "developer") continue;
      message.role = "system";
      was_developer = true;
    }
  }
  if (was_developer)
    request.warnings.push_back("the model's chat template does not know the role developer; it is read as system");
}

text::OutputForm RequestTerms::form_for(const ApiRequest& request) const {
  text::OutputForm form = form_.output;
  const Request& first = request.requests.front();
  const auto* chat = std::get_if<ChatPrompt>(&first.prompt);
  if (chat != nullptr && (chat->continue_final || !chat->kwargs_json.empty())) {
    form.opens_in_reasoning = form.has_reasoning && opens_reasoning(engine_, *chat);
  }
  // A constraint holds from the first token on, or behind reasoning that the prompt or the model opens.
  if (request.is_in_own_form) {
    form.types = text::ToolTypes::of(chat->tools_json);
    form.has_reasoning = form.has_reasoning || first.constraint->may_reason_first;
    return form;
  }
  if (first.constraint) {
    form.tools = request.must_call ? text::ToolForm::kLlama : text::ToolForm::kNone;
    form.has_reasoning = form.opens_in_reasoning || first.constraint->may_reason_first;
    return form;
  }
  if (!request.has_tools) return form.without_calls();
  if (chat != nullptr) form.types = text::ToolTypes::of(chat->tools_json);
  return form;
}

void RequestTerms::add_adapter(std::vector<Request>& requests, const std::string& model) const {
  if (limits_.adapters == nullptr) return;
  const auto is_base = [this](const std::string& name) { return limits_.is_model(name); };
  const std::optional<std::string> name = limits_.adapters->named_by(untagged(model), is_base);
  if (!name) return;
  for (Request& one : requests) one.adapters = {{*name, 1.0}};
}

// In a chat, a model whose template knows reasoning may reason before a constrained answer.
void RequestTerms::add_key(std::vector<Request>& requests, int32_t key) const {
  for (Request& one : requests) {
    if (one.constraint && std::holds_alternative<ChatPrompt>(one.prompt)) {
      one.constraint->may_reason_first = form_.output.has_reasoning;
    }
    one.scheduling.fair_key = std::to_string(key);
    one.scheduling.cache_scope = fmt::format("{}:{}", key, one.scheduling.cache_scope);
  }
}

}  // namespace candor::serve
