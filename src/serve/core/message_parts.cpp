#include "serve/core/message_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/utf8.h"
#include "formats/base64.h"
#include "serve/core/system_turns.h"

namespace candor::serve {
namespace {

Error refused(std::string words) {
  return fail(ErrorKind::kInvalidInput, std::move(words));
}

bool has_scheme(std::string_view url, std::string_view scheme) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return url.size() >= scheme.size() && std::ranges::equal(url.substr(0, scheme.size()), scheme, {}, lower);
}

Result<std::string> decoded(std::string_view text) {
  auto file = formats::from_base64(text);
  if (!file || file->empty()) return refused("holds no base64: expected an image's file, without spaces or line ends");
  return std::move(*file);
}

// Of {"content": [...]}: one part more.
void add_part(Message& message, std::string words, Side side) {
  auto extra = read_written(message.extra_json);
  if (!extra || !extra->contains("content")) return;
  Json& content = (*extra)["content"];
  const Json part = {{"type", "text"}, {"text", std::move(words)}};
  content.insert(side == Side::kBefore ? content.begin() : content.end(), part);
  message.extra_json = to_text(*extra);
}

}  // namespace

Result<void> ImageFiles::admit() {
  if (!limits_.takes_images) {
    return fail(ErrorKind::kUnsupported, "is an image: this is a text model, it takes no images");
  }
  if (++n_images_ <= kMaxImages) return {};
  return refused(fmt::format("is image {}, expected at most {} in a request", n_images_, kMaxImages));
}

Result<std::string> ImageFiles::of_base64(std::string_view text) {
  CANDOR_TRY(admit());
  return decoded(text);
}

Result<std::string> ImageFiles::of_listed(const Json& value) {
  if (!value.is_string()) return refused("is no string of base64");
  return of_base64(value.get_ref<const std::string&>());
}

Result<std::string> ImageFiles::of_url(std::string_view url) {
  CANDOR_TRY(admit());
  constexpr std::string_view kScheme = "data:";
  if (has_scheme(url, "http://") || has_scheme(url, "https://")) return fetched(url);
  if (!has_scheme(url, kScheme)) {
    return refused(fmt::format("begins with \"{}\": expected the image itself, as data:image/png;base64,...",
                               clipped(url.substr(0, std::min(url.find(':'), size_t{16})))));
  }
  const size_t comma = url.find(',');
  if (comma == std::string_view::npos || !url.substr(0, comma).ends_with(";base64")) {
    return refused("is no data URL in base64: expected data:image/png;base64,...");
  }
  const std::string_view about = url.substr(kScheme.size(), comma - kScheme.size());
  if (!has_scheme(about, "image/")) {
    return refused(fmt::format("is of type \"{}\": expected an image",
                               clipped(about.substr(0, std::min(about.find(';'), size_t{40})))));
  }
  return decoded(url.substr(comma + 1));
}

Result<std::string> ImageFiles::fetched(std::string_view url) {
  if (!limits_.fetches_images) {
    return refused(
        "is an address, and this server fetches no images: send the image itself, as data:image/png;base64,... (or "
        "start the server with --allow-image-urls)");
  }
  if (!fetch_) fetch_ = limits_.fetches_images();
  auto file = fetch_(std::string(url));
  if (!file) return fail(file.error().kind, "cannot be fetched: " + file.error().message);
  return file;
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

Message MessageParts::to_user_message(std::string_view join) {
  Message message{.role = "user"};
  Json extra = Json::object();
  give_to(message, extra, join);
  if (!extra.empty()) message.extra_json = to_text(extra);
  return message;
}

void add_paragraph(Message& message, std::string_view words, Side side) {
  if (words.empty()) return;
  const bool is_alone = message.content.empty();
  if (side == Side::kBehind) {
    add_paragraph(message.content, words);
  } else {
    std::string text(words);
    add_paragraph(text, message.content);
    message.content = std::move(text);
  }
  if (message.images.empty()) return;
  const std::string part(words);
  add_part(message, is_alone ? part : side == Side::kBefore ? part + "\n\n" : "\n\n" + part, side);
}

}  // namespace candor::serve
