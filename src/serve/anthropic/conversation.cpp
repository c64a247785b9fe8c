// system and messages of POST /v1/messages: blocks of text, thinking, calls of tools and their results.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "serve/anthropic/requests.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/model_form.h"
#include "serve/core/replayed_calls.h"
#include "serve/core/system_turns.h"

namespace candor::serve::anthropic {
namespace {

constexpr std::string_view kBilling = "x-anthropic-billing-header:";

// What clients put before their system prompt to count by. It changes with every request, and nothing behind it could
// come from the prefix cache.
bool is_billing(std::string_view text) {
  return text.starts_with(kBilling) && text.substr(0, text.find_last_not_of('\n') + 1).find('\n') == std::string::npos;
}

// Reads the messages one after the other; the first thing that is wrong ends it. Blocks of a user or of the system are
// paragraphs; those of an answer follow each other as they were written.
class MessageReader {
 public:
  MessageReader(Fields& fields, const ModelForm& form, const ApiLimits& limits, std::vector<std::string>& warnings)
      : fields_(fields), warnings_(warnings), form_(form), files_(limits), turns_(form) {}

  bool read_system() {
    const Json* system = fields_.raw("system");
    if (system == nullptr) return true;
    std::string text;
    if (!read_texts(*system, "system", text)) return false;
    add_system(std::move(text), "system");
    return true;
  }

  bool read(const Json& value, size_t index) {
    const std::string where = fmt::format("messages[{}]", index);
    if (!value.is_object()) return fails(fmt::format("{} is {}, expected an object", where, shown(value)));
    Fields message(value, where);
    const std::string role = message.text("role").value_or("");
    const Json* content = message.raw("content");
    if (message.fault()) return fails(message.fault()->message);
    if (content == nullptr) return fails(where + ".content is missing, expected a string or an array of blocks");
    ends_with_answer_ = role == "assistant";
    where_ = where + ".content";
    if (role == "user") return read_turn(*content);
    if (role == "assistant") return read_answer(*content);
    if (role != "system")
      return fails(fmt::format("{}.role is {}, expected user, assistant or system", where, shown(Json(role))));
    std::string text;
    if (!read_texts(*content, where_, text)) return false;
    add_system(std::move(text), where);
    return true;
  }

  // The answer that the last message begins is to be continued.
  bool continues() const { return ends_with_answer_ && !has_calls_ && has_words_; }
  std::vector<Message> finish() { return turns_.finish(); }

 private:
  void add_system(std::string text, const std::string& where) {
    if (text.empty() || turns_.add_system({.role = "system", .content = std::move(text)})) return;
    warnings_.push_back(where +
                        " is folded into the message beside it: the model's chat template has no place for a "
                        "message of the system there");
  }

  bool fails(std::string words) { return fields_.refuse("messages", std::move(words)), false; }
  bool fails(const Error& error) { return fields_.refuse_with(fail(error, "messages")), false; }

  // The type of each block, and the block.
  template <class Take>
  bool each_block(const Json& content, const std::string& where, Take take) {
    if (!content.is_array())
      return fails(fmt::format("{} is {}, expected a string or an array of blocks", where, shown(content)));
    for (size_t i = 0; i < content.size(); ++i) {
      const std::string at = fmt::format("{}[{}]", where, i);
      if (!content[i].is_object()) return fails(fmt::format("{} is {}, expected a block", at, shown(content[i])));
      Fields block(content[i], at);
      const auto type = block.text("type");
      block.object("cache_control");
      if (!type) block.refuse("type", at + ".type is missing, expected a string");
      if (!block.fault()) take(*type, block);
      if (block.fault()) return fails(*block.fault());
    }
    return true;
  }

  static std::string text_of(Fields& block, const char* name) {
    auto text = block.text(name);
    if (!text) block.refuse(name, block.path_of(name) + " is missing, expected a string");
    return text.value_or("");
  }

  static void refuse_type(Fields& block, const std::string& type, std::string_view expected) {
    block.refuse("type", fmt::format("{} is {}, expected {}{}", block.path_of("type"), shown(Json(type)), expected,
                                     type == "document" ? ": no documents are read here, send their text" : ""));
  }

  bool read_texts(const Json& content, const std::string& where, std::string& text) {
    if (content.is_string()) {
      text = content.get<std::string>();
      return true;
    }
    return each_block(content, where, [&](const std::string& type, Fields& block) {
      if (type != "text") return refuse_type(block, type, "text");
      const std::string words = text_of(block, "text");
      if (where != "system" || !is_billing(words)) return add_paragraph(text, words);
      warnings_.push_back(
          block.path_of("text") +
          " is an x-anthropic-billing-header, which changes with every request: it is left out, so that "
          "the prefix cache serves what follows it");
    });
  }

  bool read_turn(const Json& content) {
    if (content.is_string()) return turns_.add({.role = "user", .content = content.get<std::string>()}), true;
    if (content.is_array() && content.empty()) return fails(where_ + " is an array of 0, expected at least one block");
    std::vector<Message> results;
    bool has_words = false;
    MessageParts parts;
    const bool is_read = each_block(content, where_, [&](const std::string& type, Fields& block) {
      if (type == "tool_result") {
        read_result(block, results, parts);
      } else if (type == "text") {
        has_words = true;
        std::string text = text_of(block, "text");
        if (!text.empty()) parts.add_text(std::move(text));
      } else if (type == "image") {
        read_image(block, parts);
      } else {
        refuse_type(block, type, "text, image or tool_result");
      }
    });
    for (Message& result : results) turns_.add(std::move(result));
    if (is_read && (has_words || parts.has_images())) turns_.add(parts.to_user_message("\n\n"));
    return is_read;
  }

  // {"source": {"type": "base64", "media_type": "image/png", "data": "..."}}, or {"type": "url", "url": "..."}.
  void read_image(Fields& block, MessageParts& parts) {
    const Json* given = block.object("source");
    const std::string where = block.path_of("source");
    if (given == nullptr) return block.refuse("source", where + " is missing, expected {\"type\": \"base64\", ...}");
    Fields source(*given, where);
    const std::string type = source.text("type").value_or("");
    const std::string media = source.text("media_type").value_or("image/");
    const char* const key = type == "url" ? "url" : "data";
    const auto text = source.text(key);
    if (source.fault()) return block.refuse_with(*source.fault());
    if ((type != "base64" && type != "url") || !text)
      return block.refuse("source", where + " has no data: expected {\"type\": \"base64\", \"data\": ...}");
    if (!media.starts_with("image/"))
      return block.refuse("source", fmt::format("{}.media_type is {}, expected an image's", where, shown(Json(media))));
    auto file = type == "url" ? files_.of_url(*text) : files_.of_base64(*text);
    if (!file) {
      return block.refuse_with(
          fail(file.error().kind, fmt::format("{}.{} {}", where, key, file.error().message), "source"));
    }
    parts.add_image(std::move(*file));
  }

  // Templates show images of the user. Those of a result stand in the user's turn behind it.
  void read_result(Fields& block, std::vector<Message>& results, MessageParts& behind) {
    const std::string id = text_of(block, "tool_use_id");
    block.boolean("is_error");
    if (block.fault()) return;
    const auto known = call_ids_.find(id);
    if (known == call_ids_.end()) {
      return block.refuse("tool_use_id", fmt::format("{} {} belongs to no tool_use before it, or has a result already",
                                                     block.path_of("tool_use_id"), shown(Json(id))));
    }
    call_ids_.erase(known);
    Message result{.role = "tool", .extra_json = to_text({{"tool_call_id", id}})};
    const Json* content = block.raw("content");
    if (content != nullptr && content->is_array()) {
      if (!read_result_blocks(*content, block.path_of("content"), result.content, behind)) return;
    } else if (content != nullptr && !read_texts(*content, block.path_of("content"), result.content)) {
      return;
    }
    results.push_back(std::move(result));
  }

  bool read_result_blocks(const Json& content, const std::string& where, std::string& text, MessageParts& behind) {
    return each_block(content, where, [&](const std::string& type, Fields& block) {
      if (type == "text") return add_paragraph(text, text_of(block, "text"));
      if (type != "image") return refuse_type(block, type, "text or image");
      read_image(block, behind);
      warnings_.push_back(block.path_of("source") + " is shown to the model behind the results, as the user's");
    });
  }

  bool read_answer(const Json& content) {
    Message message{.role = "assistant"};
    std::string thinking;
    Json calls = Json::array();
    if (content.is_string()) {
      message.content = content.get<std::string>();
    } else if (!each_block(content, where_, [&](const std::string& type, Fields& block) {
                 if (type == "text") {
                   message.content += text_of(block, "text");
                 } else if (type == "thinking") {
                   thinking += text_of(block, "thinking");
                   block.text("signature");
                 } else if (type == "redacted_thinking") {
                   warnings_.push_back(block.path_of("data") + " has no effect: only its author can read it");
                 } else if (type == "tool_use") {
                   read_call(block, calls);
                 } else {
                   refuse_type(block, type, "text, thinking or tool_use");
                 }
               })) {
      return false;
    }
    has_calls_ = !calls.empty();
    has_words_ = !message.content.empty();
    Json extra = Json::object();
    const size_t n_calls = calls.size();
    if (has_calls_) extra["tool_calls"] = std::move(calls);
    if (!thinking.empty()) extra["reasoning_content"] = std::move(thinking);
    if (!extra.empty()) message.extra_json = to_text(extra);
    turns_.add(std::move(message), n_calls);
    return true;
  }

  void read_call(Fields& block, Json& calls) {
    const std::string id = text_of(block, "id");
    const std::string name = text_of(block, "name");
    if (block.fault()) return;
    if (!all_ids_.insert(id).second)
      return block.refuse("id",
                          fmt::format("{} {} is that of an earlier tool_use", block.path_of("id"), shown(Json(id))));
    call_ids_.insert(id);
    Json arguments = replayed_arguments(block.raw("input"), block.path_of("input"), form_, warnings_);
    calls.push_back(
        {{"id", id}, {"type", "function"}, {"function", {{"name", name}, {"arguments", std::move(arguments)}}}});
  }

  Fields& fields_;
  std::vector<std::string>& warnings_;
  const ModelForm& form_;
  ImageFiles files_;
  SystemTurns turns_;
  std::string where_;
  std::set<std::string> all_ids_;
  std::set<std::string> call_ids_;  // without a result
  bool ends_with_answer_ = false;
  bool has_calls_ = false;  // of the last answer
  bool has_words_ = false;
};

}  // namespace

std::optional<ChatPrompt> read_conversation(Fields& fields, const ModelForm& form, const ApiLimits& limits,
                                            std::vector<std::string>& warnings) {
  const Json* messages = fields.raw("messages");
  if (messages == nullptr || !messages->is_array() || messages->empty() || messages->size() > kMaxMessages) {
    fields.refuse("messages", fmt::format("messages is {}, expected an array of 1 to {} messages",
                                          messages == nullptr ? "missing" : shown(*messages), kMaxMessages));
    return std::nullopt;
  }
  MessageReader reader(fields, form, limits, warnings);
  if (!reader.read_system()) return std::nullopt;
  for (size_t i = 0; i < messages->size(); ++i) {
    if (!reader.read((*messages)[i], i)) return std::nullopt;
  }
  ChatPrompt chat;
  chat.messages = reader.finish();
  chat.continue_final = reader.continues();
  chat.add_generation_prompt = !chat.continue_final;
  return chat;
}

}  // namespace candor::serve::anthropic
