#include "apps/commands/chat_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/options/image_files.h"
#include "apps/options/prompt_source.h"
#include "apps/terminal/user_folders.h"
#include "formats/base64.h"
#include "formats/json_text.h"
#include "formats/new_file.h"

namespace candor::apps {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostNameBytes = 200;

Error invalid(std::string message) {
  return {ErrorKind::kInvalidInput, std::move(message), "resume"};
}

Result<Message> message_of(const nlohmann::json& json, const std::string& name) {
  const auto is_text = [&](const char* key) { return json.contains(key) && json[key].is_string(); };
  if (!json.is_object() || !is_text("role") || !is_text("content"))
    return invalid(fmt::format("{}: a message is no object of the texts role and content", name));
  Message message{json["role"].get<std::string>(), json["content"].get<std::string>()};
  const auto images = json.find("images");
  if (images == json.end() || !images->is_array() || message.role != "user") return message;
  std::vector<std::string> files;
  for (const auto& image : *images) {
    const auto file = image.is_string() ? formats::from_base64(image.get_ref<const std::string&>()) : std::nullopt;
    if (!file) return invalid(fmt::format("{}: an image of a message is no base64", name));
    files.push_back(*file);
  }
  return with_images(std::move(message.content), std::move(files));
}

}  // namespace

Result<fs::path> chat_file_of(const std::string& name) {
  if (name.find('/') != std::string::npos || name.ends_with(".json")) return fs::path(name);
  if (name.empty() || name.size() > kMostNameBytes || name.starts_with('.'))
    return invalid(fmt::format("\"{}\" is no name of a conversation", name));
  const fs::path folder = user_data_folder();
  if (folder.empty()) return invalid("there is neither HOME nor XDG_DATA_HOME: name a file (chats/one.json)");
  return folder / "chats" / (name + ".json");
}

Result<std::vector<Message>> read_chat(const fs::path& path) {
  std::error_code status;
  if (!fs::exists(path, status)) return std::vector<Message>();
  CANDOR_ASSIGN(const std::string text, read_text_file(path.string(), "the conversation"));
  CANDOR_ASSIGN(const nlohmann::json json, formats::parse_json(text, path.string(), "name another conversation"));
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer() ||
      !json.contains("messages") || !json["messages"].is_array())
    return invalid(fmt::format("{} is no conversation: it has no version and messages", path.string()));
  if (json["version"] != kChatVersion) {
    return invalid(fmt::format("{} is of version {}, and this program knows version {}: it is left alone",
                               path.string(), json["version"].dump(), kChatVersion));
  }
  std::vector<Message> messages;
  for (const auto& each : json["messages"]) {
    CANDOR_ASSIGN(Message message, message_of(each, path.string()));
    messages.push_back(std::move(message));
  }
  return messages;
}

Result<void> write_chat(const fs::path& path, const std::vector<Message>& messages) {
  std::error_code status;
  const fs::path folder = path.parent_path();
  if (!folder.empty() && fs::create_directories(folder, status)) {
    fs::permissions(folder, fs::perms::owner_all, status);
  }
  nlohmann::ordered_json json = {{"version", kChatVersion}, {"messages", nlohmann::ordered_json::array()}};
  for (const Message& message : messages) {
    json["messages"].push_back({{"role", message.role}, {"content", message.content}});
    for (const std::string& image : message.images)
      json["messages"].back()["images"].push_back(formats::to_base64(image));
  }
  return formats::write_file(path, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace candor::apps
