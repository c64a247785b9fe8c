// The conversation of POST /v1/chat/completions: roles, content parts, tool calls and their results.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/model_form.h"
#include "serve/core/replayed_calls.h"
#include "serve/core/request_terms.h"
#include "serve/openai/requests.h"

namespace candor::serve::openai {
namespace {

// Reads the messages one after the other; the first thing that is wrong ends it.
class MessageReader {
 public:
  MessageReader(Fields& fields, const RequestTerms& terms, std::vector<std::string>& warnings)
      : fields_(fields), form_(terms.model_form()), warnings_(warnings), files_(terms.limits()) {}

  std::optional<Message> read(const Json& value, size_t index) {
    where_ = fmt::format("messages[{}]", index);
    if (!value.is_object()) return refuse(fmt::format("{} is {}, expected an object", where_, shown(value)));
    Message message;
    Json extra = Json::object();
    if (!read_role(value, message) || !read_content(value, message, extra) || !read_calls(value, message, extra)) {
      return std::nullopt;
    }
    for (const char* name : {"name", "reasoning_content"}) {
      if (const auto it = value.find(name); it != value.end() && it->is_string()) extra[name] = *it;
    }
    if (const auto it = value.find("reasoning"); it != value.end() && it->is_string()) extra["reasoning_content"] = *it;
    if (!extra.empty()) message.extra_json = to_text(extra);
    return message;
  }

 private:
  std::nullopt_t refuse(std::string words) {
    fields_.refuse("messages", std::move(words));
    return std::nullopt;
  }
  bool fails(std::string words) { return refuse(std::move(words)), false; }
  bool fails(const Error& error, std::string words) {
    fields_.refuse_with(fail(error.kind, std::move(words), "messages"));
    return false;
  }

  bool read_role(const Json& value, Message& message) {
    static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant", "tool", "function"};
    const auto role = value.find("role");
    if (role == value.end() || !role->is_string()) return fails(where_ + ".role is missing, expected a string");
    message.role = role->get<std::string>();
    if (std::ranges::find(kRoles, message.role) == std::end(kRoles)) {
      return fails(
          fmt::format("{}.role is {}, expected system, developer, user, assistant or tool", where_, shown(*role)));
    }
    is_function_ = message.role == "function";
    if (is_function_) message.role = "tool";
    return true;
  }

  bool read_content(const Json& value, Message& message, Json& extra) {
    const auto content = value.find("content");
    const bool is_absent = content == value.end() || content->is_null();
    if (is_absent && message.role == "assistant") return true;
    if (is_absent) return fails(where_ + ".content is missing, expected a string or an array of parts");
    if (content->is_string()) {
      message.content = content->get<std::string>();
      return true;
    }
    if (!content->is_array()) {
      return fails(fmt::format("{}.content is {}, expected a string or an array of parts", where_, shown(*content)));
    }
    MessageParts parts;
    for (size_t i = 0; i < content->size(); ++i) {
      if (!add_part((*content)[i], fmt::format("{}.content[{}]", where_, i), parts)) return false;
    }
    parts.give_to(message, extra);
    return true;
  }

  bool add_part(const Json& part, const std::string& at, MessageParts& parts) {
    const auto type = part.is_object() ? part.find("type") : part.end();
    if (!part.is_object() || type == part.end() || !type->is_string()) {
      return fails(where_ + ".content holds a part without a type");
    }
    if (*type == "image_url") return add_image(part, at, parts);
    const char* key = *type == "refusal" ? "refusal" : "text";
    if (*type != "text" && *type != "refusal") {
      return fails(fmt::format("{}.content holds a part of type {}, expected text or image_url", where_, shown(*type)));
    }
    const auto text = part.find(key);
    if (text == part.end() || !text->is_string())
      return fails(fmt::format("{}.content holds a part without {}", where_, key));
    parts.add_text(text->get<std::string>());
    return true;
  }

  // {"image_url": {"url": "data:..."}}, or the URL alone, as some clients write it.
  bool add_image(const Json& part, const std::string& at, MessageParts& parts) {
    const auto image = part.find("image_url");
    const Json* url = image == part.end() ? nullptr : &*image;
    if (url != nullptr && url->is_object()) url = url->contains("url") ? &(*url)["url"] : nullptr;
    if (url == nullptr || !url->is_string())
      return fails(at + ".image_url.url is missing, expected data:image/png;base64,...");
    auto file = files_.of_url(url->get_ref<const std::string&>());
    if (!file) return fails(file.error(), fmt::format("{}.image_url.url {}", at, file.error().message));
    parts.add_image(std::move(*file));
    return true;
  }

  bool read_calls(const Json& value, const Message& message, Json& extra) {
    if (message.role == "tool") return is_function_ || read_result(value, extra);
    if (const auto call = value.find("function_call"); call != value.end() && call->is_object()) {
      Json list = Json::array();
      if (!add_call({{"type", "function"}, {"function", *call}}, list)) return false;
      extra["tool_calls"] = std::move(list);
    }
    const auto calls = value.find("tool_calls");
    if (calls == value.end() || calls->is_null()) return true;
    if (!calls->is_array() || message.role != "assistant") {
      return fails(where_ + ".tool_calls is not an array in a message of the assistant");
    }
    Json list = Json::array();
    for (const Json& call : *calls) {
      if (!add_call(call, list)) return false;
    }
    if (const std::string id = repeated_id(list); !id.empty())
      return fails(fmt::format("{}.tool_calls has the id {} twice", where_, shown(Json(id))));
    if (!list.empty()) extra["tool_calls"] = std::move(list);
    return true;
  }

  // Arguments come as JSON in a string; most templates want them as an object.
  bool add_call(const Json& call, Json& list) {
    const auto function = call.is_object() ? call.find("function") : call.end();
    const bool has_function = call.is_object() && function != call.end() && function->is_object();
    if (!has_function || !function->contains("name") || !(*function)["name"].is_string()) {
      return fails(where_ + ".tool_calls holds a call without function.name");
    }
    Json kept = call;
    if (const auto id = call.find("id"); id != call.end() && id->is_string()) known_ids_.insert(id->get<std::string>());
    const auto arguments = function->find("arguments");
    if (arguments != function->end()) {
      kept["function"]["arguments"] =
          replayed_arguments(&*arguments, where_ + ".tool_calls[].function.arguments", form_, warnings_);
    }
    list.push_back(std::move(kept));
    return true;
  }

  bool read_result(const Json& value, Json& extra) {
    const auto id = value.find("tool_call_id");
    if (id == value.end() || !id->is_string()) return fails(where_ + ".tool_call_id is missing, expected a string");
    if (!known_ids_.contains(id->get<std::string>())) {
      return fails(fmt::format("{}.tool_call_id {} belongs to no tool call before it", where_, shown(*id)));
    }
    extra["tool_call_id"] = *id;
    return true;
  }

  Fields& fields_;
  const ModelForm& form_;
  std::vector<std::string>& warnings_;
  ImageFiles files_;
  std::string where_;
  std::set<std::string> known_ids_;
  bool is_function_ = false;  // the role that was before tools
};

std::string json_or_nothing(const Json* value) {
  return value == nullptr || value->empty() ? std::string() : to_text(*value);
}

}  // namespace

std::optional<ChatPrompt> read_chat_prompt(Fields& fields, const RequestTerms& terms,
                                           std::vector<std::string>& warnings) {
  const Json* messages = fields.raw("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() || messages->size() > kMaxMessages) {
    fields.refuse("messages", fmt::format("messages is {}, expected an array of 1 to {} messages",
                                          messages == nullptr ? "missing" : shown(*messages), kMaxMessages));
    return std::nullopt;
  }
  ChatPrompt chat;
  MessageReader reader(fields, terms, warnings);
  for (size_t i = 0; i < messages->size(); ++i) {
    auto message = reader.read((*messages)[i], i);
    if (!message) return std::nullopt;
    chat.messages.push_back(std::move(*message));
  }
  const auto opens_turn = fields.boolean("add_generation_prompt");
  chat.continue_final = fields.boolean("continue_final_message").value_or(false);
  if (chat.continue_final && opens_turn.value_or(false)) {
    fields.refuse("continue_final_message", "continue_final_message and add_generation_prompt exclude each other");
  }
  chat.add_generation_prompt = opens_turn.value_or(!chat.continue_final);
  const Json* kwargs = fields.object("chat_template_kwargs");
  Json arguments = kwargs == nullptr ? Json::object() : *kwargs;
  if (const auto effort = fields.text("reasoning_effort")) {
    arguments.emplace("reasoning_effort", *effort);
    if (*effort == "none") arguments.emplace("enable_thinking", false);
  }
  if (const Json* documents = fields.array("documents")) arguments.emplace("documents", Json(*documents));
  chat.kwargs_json = json_or_nothing(&arguments);
  return chat;
}

}  // namespace candor::serve::openai
