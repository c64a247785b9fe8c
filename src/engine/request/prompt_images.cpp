#include "engine/request/prompt_images.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

namespace candor::engine {
namespace {

Error of_messages(std::string message) {
  return {ErrorKind::kInvalidInput, std::move(message), "messages"};
}

// Words directly behind an image get a space.
bool begins_a_word(std::string_view text, size_t at) {
  constexpr std::string_view kOthers = " \t\n\r\f\v<";
  return at < text.size() && kOthers.find(text[at]) == std::string_view::npos;
}

// A client's characters are in it: a break keeps it text.
bool is_broken(std::span<const size_t> breaks, size_t begin, size_t end) {
  const auto first = std::ranges::upper_bound(breaks, begin);
  return first != breaks.end() && *first < end;
}

struct TokenRun {
  int32_t first = 0;
  int32_t n = 0;
};

// The next tokens that stand for rows, one after another, at most so many.
TokenRun next_run(std::span<const TokenId> tokens, TokenId row, int32_t n_most) {
  const auto first = static_cast<int32_t>(std::ranges::find(tokens, row) - tokens.begin());
  int32_t n = 0;
  for (const TokenId token : tokens.subspan(static_cast<size_t>(first))) {
    if (token != row || n == n_most) break;
    ++n;
  }
  return {first, n};
}

}  // namespace

Result<RowToken> find_row_token(const vision::ImagePrompt& prompt, const text::Tokenizer& tokenizer) {
  for (const std::string_view text : prompt.row_tokens) {
    if (const auto id = tokenizer.find(text)) return RowToken{*id, text};
  }
  return Error{ErrorKind::kUnsupported,
               "images need the token " + std::string(prompt.row_tokens.front()) +
                   " in the vocabulary, which this model's lacks: name the model that the mmproj file belongs to",
               "messages"};
}

ExpandedPrompt expand_images(const text::RenderedPrompt& prompt, std::span<const SharedImage> images,
                             const vision::ImagePrompt& how, std::string_view row) {
  ExpandedPrompt result;
  text::RenderedPrompt& expanded = result.prompt;
  size_t& n_marks = result.n_marks;
  size_t copied = 0;
  auto next_break = prompt.breaks.begin();
  size_t image_end = std::string::npos;  // in the expanded text
  const auto copy_until = [&](size_t end) {
    const bool is_behind = !how.joint.empty() && expanded.text.size() == image_end && end > copied;
    if (is_behind && begins_a_word(prompt.text, copied)) expanded.text += ' ';
    for (; next_break != prompt.breaks.end() && *next_break <= end; ++next_break) {
      expanded.breaks.push_back(expanded.text.size() + *next_break - copied);
    }
    expanded.text.append(prompt.text, copied, end - copied);
    copied = end;
  };
  for (size_t at = 0; (at = prompt.text.find(how.mark, at)) != std::string::npos;) {
    const size_t end = at + how.mark.size();
    if (is_broken(prompt.breaks, at, end)) {
      at = end;
      continue;
    }
    copy_until(at);
    if (n_marks < images.size()) {
      const StoredImage& image = *images[n_marks];
      std::string own = how.expand(image.prepared(), row, image.rows_of_tiles());
      const bool meets_another = !how.joint.empty() && expanded.text.size() == image_end && own.starts_with(how.joint);
      expanded.text += meets_another ? own.substr(how.joint.size()) : own;
      image_end = expanded.text.size();
    }
    ++n_marks;
    copied = at = end;
  }
  copy_until(prompt.text.size());
  return result;
}

Result<std::vector<PlacedTile>> place_images(std::span<const TokenId> tokens, std::span<const SharedImage> images,
                                             TokenId row, const vision::VisionSpec& spec) {
  std::vector<PlacedTile> placed;
  size_t at = 0;
  for (const SharedImage& image : images) {
    int32_t first = 0;
    for (const int32_t n_rows : image->rows_of_tiles()) {
      for (const int32_t end = first + n_rows; first < end;) {
        const TokenRun run = next_run(tokens.subspan(at), row, end - first);
        const bool is_part = run.n < end - first && (spec.prompt.is_grid || spec.prompt.is_seen_whole);
        if (run.n == 0 || is_part) {
          return of_messages("the prompt has fewer rows than its images: the vocabulary is another model's");
        }
        const int32_t grid_cols = spec.prompt.is_grid ? image->prepared().tiles.front().cols / spec.regroup.n : 0;
        placed.push_back({image,
                          first,
                          {.first = static_cast<int32_t>(at) + run.first,
                           .n_rows = run.n,
                           .first_key = image->first_key() - first,
                           .is_seen_whole = spec.prompt.is_seen_whole,
                           .grid_cols = grid_cols}});
        at += static_cast<size_t>(run.first + run.n);
        first += run.n;
      }
    }
  }
  const bool is_over = std::find(tokens.begin() + static_cast<std::ptrdiff_t>(at), tokens.end(), row) == tokens.end();
  if (is_over || images.empty()) return placed;
  return of_messages("the prompt has more rows than its images: the vocabulary is another model's");
}

}  // namespace candor::engine
