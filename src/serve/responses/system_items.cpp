// Messages of the system and, where the model's chat template does not know that role, of the developer.

#include "serve/core/system_turns.h"

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "serve/core/json_body.h"
#include "serve/core/model_form.h"
#include "serve/responses/requests.h"

namespace candor::serve::responses {
namespace {

bool is_system(const Message& message, const ModelForm& form) {
  return message.role == "system" || (message.role == "developer" && !form.knows_developer);
}

size_t n_calls_of(const Message& message) {
  if (message.role != "assistant" || message.extra_json.empty()) return 0;
  const auto extra = read_written(message.extra_json);
  return extra && extra->is_object() && extra->contains("tool_calls") ? extra->at("tool_calls").size() : 0;
}

}  // namespace

std::vector<Message> place_system(std::vector<Message> messages, const ModelForm& form,
                                  std::vector<std::string>& warnings) {
  SystemTurns turns(form);
  bool has_folded = false;
  for (Message& message : messages) {
    if (is_system(message, form)) {
      has_folded |= !turns.add_system(std::move(message));
    } else {
      const size_t n_calls = n_calls_of(message);
      turns.add(std::move(message), n_calls);
    }
  }
  if (has_folded) {
    warnings.push_back(
        "the model's chat template has no place for some messages of the system: they are folded into "
        "those beside them");
  }
  return turns.finish();
}

}  // namespace candor::serve::responses
