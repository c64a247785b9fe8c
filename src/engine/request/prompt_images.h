#pragma once
// Images in a rendered prompt: the template's marks become the tokens that stand for an image's rows. Any thread.

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "engine/images/image_store.h"
#include "engine/request/active_request.h"
#include "text/chat/chat_template.h"
#include "text/tokenizer/tokenizer.h"
#include "vision/vision_spec.h"

namespace candor::engine {

// The token that stands for a row: the first of the family's that the vocabulary has.
struct RowToken {
  TokenId id = kNoToken;
  std::string_view text{};
};
Result<RowToken> find_row_token(const vision::ImagePrompt& prompt, const text::Tokenizer& tokenizer);

// The prompt with what each image becomes in place of its mark, the first image for the first mark. A mark that a
// client wrote is text. `n_marks`: how many marks there were; it is for the caller to compare.
struct ExpandedPrompt {
  text::RenderedPrompt prompt{};
  size_t n_marks = 0;
};
ExpandedPrompt expand_images(const text::RenderedPrompt& prompt, std::span<const SharedImage> images,
                             const vision::ImagePrompt& how, std::string_view row);

// Where the rows are in the tokens of such a prompt. A tile's may be in lines, with other tokens between them.
Result<std::vector<PlacedTile>> place_images(std::span<const TokenId> tokens, std::span<const SharedImage> images,
                                             TokenId row, const vision::VisionSpec& spec);

}  // namespace candor::engine
