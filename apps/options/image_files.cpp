#include "apps/options/image_files.h"

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>
#include <variant>

namespace candor::apps {

void add_images(CLI::App& command, std::vector<std::string>& files) {
  command.add_option("--image", files, "an image before the prompt; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

Result<std::string> read_image_file(const std::string& path) {
  constexpr uintmax_t kMostBytes = uintmax_t{80} << 20;
  const auto refuse = [&](const std::string& why) {
    return fail(ErrorKind::kInvalidInput, fmt::format("the image '{}' {}", path, why));
  };
  std::error_code status;
  const std::filesystem::path file(path);
  if (!std::filesystem::exists(file, status)) return refuse("does not exist");
  if (!std::filesystem::is_regular_file(file, status)) return refuse("is no file");
  const uintmax_t n_bytes = std::filesystem::file_size(file, status);
  if (status || n_bytes > kMostBytes) return refuse(fmt::format("has more than {} MB", kMostBytes >> 20));
  std::ifstream stream(file, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  if (stream.bad() || bytes.empty()) return refuse(bytes.empty() ? "is empty" : "cannot be read");
  return bytes;
}

Message with_images(std::string text, std::vector<std::string> images) {
  Message message{.role = "user", .content = std::move(text), .images = std::move(images)};
  if (message.images.empty()) return message;
  nlohmann::json parts = nlohmann::json::array();
  for (size_t i = 0; i < message.images.size(); ++i) parts.push_back({{"type", "image"}});
  if (!message.content.empty()) parts.push_back({{"type", "text"}, {"text", message.content}});
  message.extra_json = nlohmann::json{{"content", std::move(parts)}}.dump();
  return message;
}

Result<Message> user_message(std::string text, const std::vector<std::string>& files) {
  std::vector<std::string> images;
  for (const std::string& path : files) {
    CANDOR_ASSIGN(std::string bytes, read_image_file(path));
    images.push_back(std::move(bytes));
  }
  return with_images(std::move(text), std::move(images));
}

Result<void> put_images(const std::vector<std::string>& files, Prompt& prompt) {
  if (files.empty()) return {};
  auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (chat == nullptr) {
    return fail(ErrorKind::kInvalidInput,
                "--image needs the chat template: leave --raw out, or take a model that has one");
  }
  CANDOR_ASSIGN(chat->messages.back(), user_message(std::move(chat->messages.back().content), files));
  return {};
}

}  // namespace candor::apps
