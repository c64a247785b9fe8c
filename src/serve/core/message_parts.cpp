#include "serve/core/message_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/base64.h"

namespace candor::serve {
namespace {

Error refused(std::string words) {
  return fail(ErrorKind::kInvalidInput, std::move(words));
}

}  // namespace

Result<std::string> file_of_base64(std::string_view text) {
  auto file = formats::from_base64(text);
  if (!file || file->empty()) return refused("holds no base64: expected an image's file, without spaces or line ends");
  return std::move(*file);
}

Result<std::string> file_of_data_url(std::string_view url) {
  constexpr std::string_view kScheme = "data:";
  if (!url.starts_with(kScheme)) {
    const std::string scheme(url.substr(0, std::min(url.find(':'), size_t{16})));
    return refused(fmt::format(
        "begins with \"{}\": nothing is fetched here, send the image as data:image/png;base64,...", scheme));
  }
  const size_t comma = url.find(',');
  const std::string_view about =
      url.substr(kScheme.size(), comma == std::string_view::npos ? 0 : comma - kScheme.size());
  if (comma == std::string_view::npos || !about.ends_with(";base64")) {
    return refused("is no data URL in base64: expected data:image/png;base64,...");
  }
  if (!about.starts_with("image/")) {
    return refused(
        fmt::format("is of type {}: expected an image", about.substr(0, std::min(about.find(';'), size_t{40}))));
  }
  return file_of_base64(url.substr(comma + 1));
}

void MessageParts::add_image(std::string file) {
  images_.push_back({texts_.size(), std::move(file)});
}

void MessageParts::give_to(Message& message, Json& extra, std::string_view join) {
  for (size_t i = 0; i < texts_.size(); ++i)
    message.content.append(i == 0 ? std::string_view() : join).append(texts_[i]);
  if (images_.empty()) return;
  Json parts = Json::array();
  size_t image = 0;
  for (size_t i = 0; i <= texts_.size(); ++i) {
    for (; image < images_.size() && images_[image].n_texts_before == i; ++image) {
      parts.push_back({{"type", "image"}});
      message.images.push_back(std::move(images_[image].file));
    }
    if (i < texts_.size()) parts.push_back({{"type", "text"}, {"text", texts_[i]}});
  }
  extra["content"] = std::move(parts);
}

}  // namespace candor::serve
