// The conversation of POST /v1/responses: messages, reasoning, calls and their results, each an item of its own, put
// together to the turns that chat templates know.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
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
#include "serve/responses/requests.h"
#include "serve/responses/sealed_text.h"

namespace candor::serve::responses {
namespace {

// What the assistant has said in one turn.
struct AssistantTurn {
  bool is_open = false;
  bool has_content = false;
  std::string content;
  std::string reasoning;
  Json calls = Json::array();
};

// Reads the items one after the other; the first thing that is wrong ends it.
class ItemReader {
 public:
  ItemReader(Fields& fields, const RequestTerms& terms, std::vector<Message>& messages,
             std::vector<std::string>& warnings)
      : fields_(fields), form_(terms.model_form()), messages_(messages), warnings_(warnings), files_(terms.limits()) {}

  void read(const Json& value, size_t index);
  void finish();

 private:
  using Handler = void (ItemReader::*)(Fields& item);
  static Handler handler_of(std::string_view type);

  void read_message(Fields& item);
  void read_user(const Json& content, const std::string& where);
  void read_image(const Json& part, const std::string& where, MessageParts& parts);
  void read_reasoning(Fields& item);
  void read_call(Fields& item);
  void read_custom_call(Fields& item);
  void read_result(Fields& item);
  void refuse_reference(Fields& item);

  void close_turn();
  void show_images();
  void add_call(Fields& item, const std::string& name, Json arguments);
  std::string needed_text(Fields& item, const char* name);
  // What a tool gave; its images are kept for the user's turn behind it.
  std::string needed_output(Fields& item);
  // A string, or parts of text.
  std::string needed_content(Fields& item, const char* name);
  std::string text_of_part(const Json& part, const std::string& where);
  std::string text_of_parts(const Json& parts, const std::string& where);
  void refuse(const std::string& field, std::string words) { fields_.refuse(field.c_str(), std::move(words)); }

  Fields& fields_;
  const ModelForm& form_;
  std::vector<Message>& messages_;
  std::vector<std::string>& warnings_;
  ImageFiles files_;
  AssistantTurn turn_;
  MessageParts behind_results_;
  std::set<std::string> called_;    // call ids
  std::set<std::string> answered_;  // of them
};

bool is_image(const Json& part) {
  return part.is_object() && part.value("type", Json()) == "input_image";
}

ItemReader::Handler ItemReader::handler_of(std::string_view type) {
  static constexpr std::pair<std::string_view, Handler> kHandlers[] = {
      {"message", &ItemReader::read_message},
      {"reasoning", &ItemReader::read_reasoning},
      {"function_call", &ItemReader::read_call},
      {"custom_tool_call", &ItemReader::read_custom_call},
      {"function_call_output", &ItemReader::read_result},
      {"custom_tool_call_output", &ItemReader::read_result},
      {"item_reference", &ItemReader::refuse_reference},
  };
  for (const auto& [name, handler] : kHandlers) {
    if (name == type) return handler;
  }
  return nullptr;
}

// Without a type, what has a role is a message, and what has nothing but an id a reference.
void ItemReader::read(const Json& value, size_t index) {
  const std::string where = fmt::format("input[{}]", index);
  if (!value.is_object()) return refuse(where, fmt::format("{} is {}, expected an object", where, shown(value)));
  Fields item(value, where);
  const char* const fallback = item.has("role")                      ? "message"
                               : value.size() == 1 && item.has("id") ? "item_reference"
                                                                     : "";
  const std::string type = item.text("type").value_or(fallback);
  if (!item.fault() && type.empty()) item.refuse("type", where + ".type is missing, expected a string");
  const Handler handler = handler_of(type);
  if (!item.fault() && handler == nullptr) {
    item.refuse("type", fmt::format("{}.type is {}, expected message, reasoning, function_call, function_call_output, "
                                    "custom_tool_call or custom_tool_call_output",
                                    where, shown(Json(type))));
  }
  item.text("id");
  item.text("status");
  if (!item.fault() && handler != &ItemReader::read_result && type != "message") show_images();
  if (!item.fault()) (this->*handler)(item);
  if (item.fault()) fields_.refuse_with(*item.fault());
}

std::string ItemReader::needed_text(Fields& item, const char* name) {
  if (!item.has(name)) item.refuse(name, item.path_of(name) + " is missing, expected a string");
  return item.text(name).value_or("");
}

std::string ItemReader::text_of_part(const Json& part, const std::string& where) {
  static constexpr std::string_view kTexts[] = {"input_text", "output_text", "text", "summary_text", "reasoning_text"};
  const auto type = part.is_object() ? part.find("type") : part.end();
  if (!part.is_object() || type == part.end() || !type->is_string()) {
    refuse(where, fmt::format("{} is {}, expected a part with a type", where, shown(part)));
    return {};
  }
  const auto& word = type->get_ref<const std::string&>();
  const bool is_text = std::ranges::find(kTexts, word) != std::end(kTexts);
  if (!is_text && word != "refusal") {
    refuse(where + ".type", fmt::format("{}.type is {}: expected input_text, output_text or refusal{}", where,
                                        shown(*type), word == "input_image" ? " (images are the user's)" : ""));
    return {};
  }
  const char* const key = is_text ? "text" : "refusal";
  const auto text = part.find(key);
  if (text == part.end() || !text->is_string()) {
    refuse(fmt::format("{}.{}", where, key), fmt::format("{}.{} is missing, expected a string", where, key));
    return {};
  }
  return text->get<std::string>();
}

std::string ItemReader::text_of_parts(const Json& parts, const std::string& where) {
  std::string text;
  for (size_t i = 0; i < parts.size() && !fields_.fault(); ++i) {
    text += text_of_part(parts[i], fmt::format("{}[{}]", where, i));
  }
  return text;
}

std::string ItemReader::needed_content(Fields& item, const char* name) {
  const Json* value = item.raw(name);
  if (value != nullptr && value->is_string()) return value->get<std::string>();
  if (value != nullptr && value->is_array()) return text_of_parts(*value, item.path_of(name));
  item.refuse(name, fmt::format("{} is {}, expected a string or an array of parts", item.path_of(name),
                                value == nullptr ? "missing" : shown(*value)));
  return {};
}

void ItemReader::read_message(Fields& item) {
  static constexpr std::string_view kRoles[] = {"system", "developer", "user", "assistant"};
  const std::string role = needed_text(item, "role");
  if (!item.fault() && std::ranges::find(kRoles, role) == std::end(kRoles)) {
    return item.refuse("role", fmt::format("{} is {}, expected system, developer, user or assistant",
                                           item.path_of("role"), shown(Json(role))));
  }
  const Json* parts = item.raw("content");
  if (role == "user" && parts != nullptr && parts->is_array()) return read_user(*parts, item.path_of("content"));
  std::string content = needed_content(item, "content");
  if (role == "user" && behind_results_.has_images()) {
    behind_results_.add_text(std::move(content));
    return show_images();
  }
  show_images();
  if (role != "assistant") {
    close_turn();
    messages_.push_back({.role = role, .content = std::move(content)});
    return;
  }
  if (turn_.has_content || !turn_.calls.empty()) close_turn();
  turn_.is_open = turn_.has_content = true;
  turn_.content = std::move(content);
}

// Texts and images.
void ItemReader::read_user(const Json& content, const std::string& where) {
  MessageParts parts = std::exchange(behind_results_, {});
  for (size_t i = 0; i < content.size() && !fields_.fault(); ++i) {
    const std::string at = fmt::format("{}[{}]", where, i);
    if (is_image(content[i])) {
      read_image(content[i], at, parts);
    } else {
      parts.add_text(text_of_part(content[i], at));
    }
  }
  close_turn();
  messages_.push_back(parts.to_user_message());
}

// {"type": "input_image", "image_url": "data:..."}.
void ItemReader::read_image(const Json& part, const std::string& where, MessageParts& parts) {
  const auto url = part.find("image_url");
  const std::string at = where + ".image_url";
  if (url == part.end() || !url->is_string())
    return refuse(at, at + " is missing, expected data:image/png;base64,... (no files are stored here)");
  auto file = files_.of_url(url->get_ref<const std::string&>());
  if (!file) return fields_.refuse_with(fail(file.error().kind, fmt::format("{} {}", at, file.error().message), at));
  parts.add_image(std::move(*file));
}

// Its text, or the copy of it that this server has sealed, or what another has made of it as a summary.
void ItemReader::read_reasoning(Fields& item) {
  std::string text;
  if (const Json* content = item.array("content")) text = text_of_parts(*content, item.path_of("content"));
  const Json* summary = item.array("summary");
  const std::string summed_up = summary == nullptr ? "" : text_of_parts(*summary, item.path_of("summary"));
  const auto copy = item.text("encrypted_content");
  if (text.empty() && copy) {
    const auto opened = unsealed(*copy);
    text = opened.value_or("");
    if (!opened) warnings_.push_back(item.path_of("encrypted_content") + " is not of this server and has no effect");
  }
  if (text.empty()) text = summed_up;
  if (turn_.has_content || !turn_.calls.empty()) close_turn();
  turn_.is_open = true;
  if (!turn_.reasoning.empty() && !text.empty()) turn_.reasoning += '\n';
  turn_.reasoning += text;
}

void ItemReader::read_call(Fields& item) {
  const std::string name = needed_text(item, "name");
  const std::string name_space = item.text("namespace").value_or("");
  needed_text(item, "arguments");
  if (item.fault()) return;
  add_call(item, shown_name(name, name_space),
           replayed_arguments(item.raw("arguments"), item.path_of("arguments"), form_, warnings_));
}

void ItemReader::read_custom_call(Fields& item) {
  const std::string name = needed_text(item, "name");
  const std::string name_space = item.text("namespace").value_or("");
  const std::string input = needed_text(item, kCustomInput);
  add_call(item, shown_name(name, name_space), Json{{kCustomInput, input}});
}

void ItemReader::add_call(Fields& item, const std::string& name, Json arguments) {
  const std::string id = needed_text(item, "call_id");
  if (item.fault()) return;
  if (name.empty()) return item.refuse("name", item.path_of("name") + " is empty, expected the name of a tool");
  if (id.empty()) return item.refuse("call_id", item.path_of("call_id") + " is empty, expected the id of the call");
  if (!called_.insert(id).second) {
    return item.refuse("call_id",
                       fmt::format("{} {} is that of a call before it", item.path_of("call_id"), shown(Json(id))));
  }
  turn_.is_open = true;
  turn_.calls.push_back(
      {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
}

void ItemReader::read_result(Fields& item) {
  const std::string id = needed_text(item, "call_id");
  std::string output = needed_output(item);
  if (item.fault()) return;
  if (!called_.contains(id)) {
    return item.refuse("call_id",
                       fmt::format("{} {} belongs to no call before it", item.path_of("call_id"), shown(Json(id))));
  }
  if (!answered_.insert(id).second) {
    return item.refuse("call_id",
                       fmt::format("{} {} has an output before it", item.path_of("call_id"), shown(Json(id))));
  }
  close_turn();
  messages_.push_back(
      {.role = "tool", .content = std::move(output), .extra_json = to_text(Json{{"tool_call_id", id}})});
}

std::string ItemReader::needed_output(Fields& item) {
  const Json* value = item.raw("output");
  if (value == nullptr || !value->is_array()) return needed_content(item, "output");
  std::string text;
  for (size_t i = 0; i < value->size() && !fields_.fault(); ++i) {
    const std::string at = fmt::format("{}[{}]", item.path_of("output"), i);
    if (!is_image((*value)[i])) {
      text += text_of_part((*value)[i], at);
      continue;
    }
    read_image((*value)[i], at, behind_results_);
    warnings_.push_back(at + " is shown to the model behind the results, as the user's");
  }
  return text;
}

// Of results, as a turn of the user.
void ItemReader::show_images() {
  if (!behind_results_.has_images()) return;
  messages_.push_back(std::exchange(behind_results_, {}).to_user_message());
}

void ItemReader::finish() {
  close_turn();
  show_images();
}

void ItemReader::refuse_reference(Fields& item) {
  item.refuse("type", item.path_of("type") + " is item_reference, and nothing is stored here: send the item itself");
}

void ItemReader::close_turn() {
  if (!turn_.is_open) return;
  AssistantTurn turn = std::exchange(turn_, {});
  Json extra = Json::object();
  if (!turn.calls.empty()) extra["tool_calls"] = std::move(turn.calls);
  if (!turn.reasoning.empty()) extra["reasoning_content"] = std::move(turn.reasoning);
  if (extra.empty() && !turn.has_content) return;
  messages_.push_back({.role = "assistant",
                       .content = std::move(turn.content),
                       .extra_json = extra.empty() ? std::string() : to_text(extra)});
}

}  // namespace

std::vector<Message> read_input(Fields& fields, const RequestTerms& terms, std::vector<std::string>& warnings) {
  std::vector<Message> messages;
  if (const auto instructions = fields.text("instructions"); instructions && !instructions->empty()) {
    messages.push_back({.role = "system", .content = *instructions});
  }
  const Json* input = fields.raw("input");
  if (input != nullptr && input->is_string()) {
    messages.push_back({.role = "user", .content = input->get<std::string>()});
    return place_system(std::move(messages), terms.model_form(), warnings);
  }
  if (input == nullptr || !input->is_array() || input->empty() || input->size() > kMaxMessages) {
    fields.refuse("input", fmt::format("input is {}, expected a string or an array of 1 to {} items",
                                       input == nullptr ? "missing" : shown(*input), kMaxMessages));
    return messages;
  }
  ItemReader reader(fields, terms, messages, warnings);
  for (size_t i = 0; i < input->size() && !fields.fault(); ++i) reader.read((*input)[i], i);
  reader.finish();
  if (messages.empty()) fields.refuse("input", "input holds no words, expected at least one message");
  return place_system(std::move(messages), terms.model_form(), warnings);
}

}  // namespace candor::serve::responses
