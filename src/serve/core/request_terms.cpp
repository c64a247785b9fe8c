#include "serve/core/request_terms.h"

#include <fmt/format.h>

#include <string>
#include <variant>

namespace candor::serve {

void RequestTerms::settle(ApiRequest& request) const {
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
  if (first.constraint) {
    form.tools = request.must_call ? text::ToolForm::kLlama : text::ToolForm::kNone;
    form.has_reasoning = form.opens_in_reasoning || first.constraint->may_reason_first;
    return form;
  }
  if (!request.has_tools) return form.without_calls();
  if (chat != nullptr) form.types = text::ToolTypes::of(chat->tools_json);
  return form;
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
