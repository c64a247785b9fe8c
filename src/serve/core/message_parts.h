#pragma once
// The content of one message, part by part: texts, and images as files. Every interface has its own names for the
// parts; what becomes of them is one thing.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/json_body.h"

namespace candor::serve {

// The images of one request, from what a client wrote to files. An error's words follow the name of the part: "is of
// type text/plain: expected an image". Refused: any image where the model takes none, more than kMaxImages, and what is
// no base64. What a file holds is for the engine to see.
class ImageFiles {
 public:
  // The limits are borrowed.
  explicit ImageFiles(const ApiLimits& limits) : limits_(limits) {}

  // "data:image/png;base64,...", or an address (http, https) where the server fetches images.
  Result<std::string> of_url(std::string_view url);
  Result<std::string> of_base64(std::string_view text);
  // A member of a list of images: a string of base64.
  Result<std::string> of_listed(const Json& value);

 private:
  Result<void> admit();
  Result<std::string> fetched(std::string_view url);

  const ApiLimits& limits_;
  size_t n_images_ = 0;
  FetchImage fetch_;  // made with the first address
};

class MessageParts {
 public:
  void add_text(std::string text) { texts_.push_back(std::move(text)); }
  // Behind the texts so far.
  void add_image(std::string file);

  bool has_images() const { return !images_.empty(); }
  // Content and images of the message. Without images the texts are one, put together by `join`.
  void give_to(Message& message, Json& extra, std::string_view join = {});
  // The same, as a message of the user.
  Message to_user_message(std::string_view join = {});

 private:
  struct Image {
    size_t n_texts_before = 0;
    std::string file;
  };
  std::vector<std::string> texts_;
  std::vector<Image> images_;
};

// A paragraph more before or behind what a message says, whether it has images or not.
enum class Side : uint8_t { kBefore, kBehind };
void add_paragraph(Message& message, std::string_view words, Side side);

}  // namespace candor::serve
