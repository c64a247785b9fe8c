#pragma once
// The content of one message, part by part: texts, and images as files in base64. Every interface has its own names for
// the parts; what becomes of them is one thing.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "candor/request.h"
#include "serve/core/json_body.h"

namespace candor::serve {

// The file in "data:image/png;base64,...". Refused, in words that follow the field's name: other schemes (nothing is
// fetched here), other types of media, and what is no base64.
Result<std::string> file_of_data_url(std::string_view url);
// The file in base64 alone.
Result<std::string> file_of_base64(std::string_view text);

class MessageParts {
 public:
  void add_text(std::string text) { texts_.push_back(std::move(text)); }
  // Behind the texts so far.
  void add_image(std::string file);

  bool has_images() const { return !images_.empty(); }
  // Content and images of the message. Without images the texts are one, put together by `join`.
  void give_to(Message& message, Json& extra, std::string_view join = {});

 private:
  struct Image {
    size_t n_texts_before = 0;
    std::string file;
  };
  std::vector<std::string> texts_;
  std::vector<Image> images_;
};

}  // namespace candor::serve
