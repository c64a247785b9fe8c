// The conversation of POST /api/chat.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/model_form.h"
#include "serve/core/replayed_calls.h"
#include "serve/core/request_terms.h"
#include "serve/ollama/requests.h"

namespace candor::serve::ollama {
namespace {

// Reads the messages one after the other; the first thing that is wrong ends it. Calls may come without an id: results
// then belong to the calls in their order.
class MessageReader {
 public:
  MessageReader(Fields& fields, const RequestTerms& terms, std::vector<std::string>& warnings)
      : fields_(fields), form_(terms.model_form()), warnings_(warnings), files_(terms.limits()) {}

  std::optional<Message> read(const Json& value, size_t index) {
    where_ = fmt::format("messages[{}]", index);
    if (!value.is_object()) return refuse(fmt::format("{} is {}, expected an object", where_, shown(value)));
    Fields fields(value, where_);
    Message message;
    Json extra = Json::object();
    read_role(fields, message);
    MessageParts parts;
    read_images(fields, files_, parts);
    parts.add_text(fields.text("content").value_or(""));
    parts.give_to(message, extra);
    if (const auto thinking = fields.text("thinking")) extra["reasoning_content"] = *thinking;
    if (message.role == "tool") read_result(fields, extra);
    read_calls(fields, message, extra);
    if (fields.fault()) {
      fields_.refuse_with(fail(*fields.fault(), "messages"));
      return std::nullopt;
    }
    if (!extra.empty()) message.extra_json = to_text(extra);
    return message;
  }

 private:
  std::nullopt_t refuse(std::string words) {
    fields_.refuse("messages", std::move(words));
    return std::nullopt;
  }

  void read_role(Fields& fields, Message& message) const {
    static constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};
    message.role = fields.text("role").value_or("");
    if (std::ranges::find(kRoles, message.role) != std::end(kRoles)) return;
    fields.refuse("role", fmt::format("{}.role is {}, expected system, user, assistant or tool", where_,
                                      message.role.empty() ? "missing" : shown(Json(message.role))));
  }

  void read_result(Fields& fields, Json& extra) {
    if (const auto name = fields.text("tool_name")) extra["name"] = *name;
    const auto id = fields.text("tool_call_id");
    if (id) {
      const auto found = std::ranges::find(open_calls_, *id);
      if (found == open_calls_.end()) {
        return fields.refuse("tool_call_id", fmt::format("{}.tool_call_id {} belongs to no tool call before it", where_,
                                                         shown(Json(*id))));
      }
      open_calls_.erase(found);
      extra["tool_call_id"] = *id;
    } else if (!open_calls_.empty()) {
      extra["tool_call_id"] = open_calls_.front();
      open_calls_.pop_front();
    } else {
      fields.refuse("role", where_ + " is the result of a tool call, and none before it is without one");
    }
  }

  void read_calls(Fields& fields, const Message& message, Json& extra) {
    const Json* calls = fields.array("tool_calls");
    if (calls == nullptr || calls->empty()) return;
    if (message.role != "assistant")
      return fields.refuse("tool_calls", where_ + ".tool_calls stand in a message that is not the assistant's");
    Json list = Json::array();
    for (const Json& call : *calls) add_call(fields, call, list);
    if (const std::string id = repeated_id(list); !id.empty())
      fields.refuse("tool_calls", fmt::format("{}.tool_calls has the id {} twice", where_, shown(Json(id))));
    extra["tool_calls"] = std::move(list);
  }

  void add_call(Fields& fields, const Json& call, Json& list) {
    const auto function = call.is_object() ? call.find("function") : call.end();
    if (!call.is_object() || function == call.end() || !function->is_object())
      return fields.refuse("tool_calls", where_ + ".tool_calls holds a call without a function");
    Fields inner(*function, where_ + ".tool_calls.function");
    const auto name = inner.text("name");
    if (!name) inner.refuse("name", inner.path_of("name") + " is missing, expected a string");
    if (inner.fault()) return fields.refuse_with(*inner.fault());
    Json arguments = replayed_arguments(inner.raw("arguments"), inner.path_of("arguments"), form_, warnings_);
    const auto given = call.find("id");
    const bool has_id = given != call.end() && given->is_string() && !given->get_ref<const std::string&>().empty();
    const std::string id = has_id ? given->get<std::string>() : fmt::format("call{:05}", ++n_ids_);
    open_calls_.push_back(id);
    list.push_back(
        {{"id", id}, {"type", "function"}, {"function", {{"name", *name}, {"arguments", std::move(arguments)}}}});
  }

  Fields& fields_;
  const ModelForm& form_;
  std::vector<std::string>& warnings_;
  ImageFiles files_;
  std::string where_;
  std::deque<std::string> open_calls_;  // without a result yet
  int32_t n_ids_ = 0;                   // that were made here
};

}  // namespace

// Before the text, as their server has them.
void read_images(Fields& fields, ImageFiles& files, MessageParts& parts) {
  const Json* images = fields.array("images");
  if (images == nullptr) return;
  for (size_t i = 0; i < images->size() && !fields.fault(); ++i) {
    auto file = files.of_listed((*images)[i]);
    if (!file) {
      return fields.refuse_with(fail(
          file.error().kind, fmt::format("{}[{}] {}", fields.path_of("images"), i, file.error().message), "images"));
    }
    parts.add_image(std::move(*file));
  }
}

std::optional<std::vector<Message>> read_messages(Fields& fields, const RequestTerms& terms,
                                                  std::vector<std::string>& warnings) {
  const Json* list = fields.array("messages");
  if (list == nullptr || list->size() > kMaxMessages) {
    fields.refuse("messages", fmt::format("messages is {}, expected an array of at most {} messages",
                                          list == nullptr ? "missing" : shown(*list), kMaxMessages));
    return std::nullopt;
  }
  std::vector<Message> messages;
  MessageReader reader(fields, terms, warnings);
  for (size_t i = 0; i < list->size(); ++i) {
    auto message = reader.read((*list)[i], i);
    if (!message) return std::nullopt;
    messages.push_back(std::move(*message));
  }
  return messages;
}

}  // namespace candor::serve::ollama
