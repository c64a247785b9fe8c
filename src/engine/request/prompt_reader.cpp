#include "engine/request/prompt_reader.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include "base/utf8.h"
#include "engine/request/prompt_images.h"
#include "engine/request/request_check.h"

namespace candor::engine {
namespace {

constexpr const char* kTemplateKey = "tokenizer.chat_template";

Result<void> check_text(const std::string& text, const char* what) {
  const size_t bad = first_invalid_utf8(text);
  if (bad == text.size()) return {};
  return Error{ErrorKind::kInvalidInput,
               std::string(what) + " is not valid UTF-8: byte " +
                   std::to_string(static_cast<unsigned char>(text[bad])) + " at offset " + std::to_string(bad),
               "prompt"};
}

int64_t wall_clock_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// "user 2, system 1": images in messages, by role.
std::string images_by_role(const ChatPrompt& chat) {
  std::map<std::string_view, size_t> by_role;
  for (const Message& message : chat.messages) {
    if (!message.images.empty()) by_role[message.role] += message.images.size();
  }
  std::string list;
  for (const auto& [role, n] : by_role) {
    list += (list.empty() ? "" : ", ") + std::string(role) + " " + std::to_string(n);
  }
  return list;
}

Error misplaced_images(const ChatPrompt& chat, size_t n_marks, size_t n_images) {
  return {ErrorKind::kInvalidInput,
          "the chat template has places for " + std::to_string(n_marks) + " images, and the messages hold " +
              std::to_string(n_images) + " (by role: " + images_by_role(chat) +
              "): give each image as a part of its message's content, in a role that the template shows images of",
          "messages"};
}

}  // namespace

PromptReader::PromptReader(const formats::ModelFile& file, const text::Tokenizer& tokenizer,
                           sandbox::HelperPool& helpers, const ImageReader* images)
    : tokenizer_(tokenizer), images_(images) {
  const auto pairs = formats::meta_string(file, "tokenizer.chat_template.rerank");
  if (pairs && pairs->has_value()) pairs_ = text::PairTemplate::make(**pairs, tokenizer);
  const auto source = formats::meta_string(file, kTemplateKey);
  if (!source) {
    template_error_ = source.error().message;
  } else if (source->has_value()) {
    template_source_ = **source;
    auto compiled = text::ChatTemplate::compile(**source, tokenizer, helpers);
    if (compiled) {
      template_ = std::move(*compiled);
    } else {
      template_error_ = compiled.error().message;
    }
  }
}

Result<ReadPrompt> PromptReader::read(const Prompt& prompt, const std::vector<std::string>& files,
                                      const std::function<void(ReadPart)>& on_done) const {
  if (const auto* tokens = std::get_if<TokenPrompt>(&prompt)) return read_tokens(*tokens, files, on_done);
  if (!files.empty()) {
    return Error{ErrorKind::kInvalidInput, "images go with a prompt of token ids: texts and messages hold their own",
                 "images"};
  }
  if (const auto* pair = std::get_if<PairPrompt>(&prompt)) return read_pair(*pair);
  const auto* text = std::get_if<TextPrompt>(&prompt);
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (chat != nullptr) return read_chat(*chat, on_done);
  return text->images.empty() ? read_text(*text) : read_text_with_images(*text, on_done);
}

Result<ReadPrompt> PromptReader::read_pair(const PairPrompt& prompt) const {
  if (auto checked = check_text(prompt.first, "the first text"); !checked) return checked.error();
  if (auto checked = check_text(prompt.second, "the second text"); !checked) return checked.error();
  if (pairs_) {
    const auto rendered = pairs_->render(prompt.first, prompt.second);
    if (!rendered) return fail(rendered.error(), "prompt");
    auto tokens = text::tokenize_prompt(tokenizer_, *rendered);
    if (!tokens) return fail(std::move(tokens).error(), "prompt");
    return ReadPrompt{.tokens = std::move(*tokens), .is_whole = true};
  }
  auto pair = tokenizer_.encode_pair(prompt.first, prompt.second);
  if (!pair) return fail(std::move(pair).error(), "prompt");
  return ReadPrompt{
      .tokens = std::move(pair->tokens), .second_begin = pair->second_begin, .has_types = pair->has_types};
}

Result<ReadPrompt> PromptReader::read_text(const TextPrompt& prompt) const {
  if (auto checked = check_text(prompt.text, "the prompt"); !checked) return checked.error();
  text::EncodeOptions options;
  options.add_special = prompt.add_special;
  options.parse_special = prompt.parse_special;
  auto tokens = tokenizer_.encode(prompt.text, options);
  if (!tokens) return fail(std::move(tokens).error(), "prompt");
  return ReadPrompt{.tokens = std::move(*tokens)};
}

// Marks become the tokens around an image, which are control tokens.
Result<ReadPrompt> PromptReader::read_text_with_images(const TextPrompt& prompt,
                                                       const std::function<void(ReadPart)>& on_done) const {
  if (auto checked = check_text(prompt.text, "the prompt"); !checked) return checked.error();
  std::vector<SharedImage> images;
  CANDOR_TRY(read_images(prompt.images, "prompt", images));
  if (on_done) on_done(ReadPart::kImages);
  if (!prompt.parse_special) {
    return Error{ErrorKind::kInvalidInput,
                 "a text with images has control tokens around them: set parse_special, or send messages", "prompt"};
  }
  vision::ImagePrompt how = images_->spec().prompt;
  how.mark = kImageMark;
  CANDOR_ASSIGN(const RowToken row, find_row_token(how, tokenizer_));
  const ExpandedPrompt expanded = expand_images({prompt.text, {}}, images, how, row.text);
  if (expanded.n_marks != images.size()) {
    return Error{ErrorKind::kInvalidInput,
                 "the prompt has " + std::to_string(expanded.n_marks) + " marks " + std::string(kImageMark) + ", and " +
                     std::to_string(images.size()) + " images: write one mark where each image stands",
                 "prompt"};
  }
  auto tokens =
      tokenizer_.encode(expanded.prompt.text, {.add_special = prompt.add_special, .parse_special = true, .breaks = {}});
  if (!tokens) return fail(std::move(tokens).error(), "prompt");
  ReadPrompt read{.tokens = std::move(*tokens)};
  auto placed = place_images(read.tokens, images, row.id, images_->spec());
  if (!placed) return fail(std::move(placed).error(), "prompt");
  read.images = std::move(*placed);
  return read;
}

Result<ReadPrompt> PromptReader::read_tokens(const TokenPrompt& tokens, const std::vector<std::string>& files,
                                             const std::function<void(ReadPart)>& on_done) const {
  if (auto checked = check_tokens(tokens, tokenizer_); !checked) return checked.error();
  ReadPrompt read{.tokens = tokens};
  if (files.empty()) return read;
  std::vector<SharedImage> images;
  CANDOR_TRY(read_images(files, "images", images));
  if (on_done) on_done(ReadPart::kImages);
  CANDOR_ASSIGN(const RowToken row, find_row_token(images_->spec().prompt, tokenizer_));
  auto placed = place_images(tokens, images, row.id, images_->spec());
  if (!placed) return fail(std::move(placed).error(), "images");
  read.images = std::move(*placed);
  return read;
}

Result<ReadPrompt> PromptReader::read_chat(const ChatPrompt& chat, const std::function<void(ReadPart)>& on_done) const {
  std::vector<SharedImage> images;
  for (const Message& message : chat.messages) CANDOR_TRY(read_images(message.images, "messages", images));
  if (on_done) on_done(ReadPart::kImages);
  auto rendered = render_marked(chat);
  if (!rendered) return rendered.error();
  RowToken row;
  if (!images.empty()) {
    const vision::ImagePrompt& how = images_->spec().prompt;
    CANDOR_ASSIGN(row, find_row_token(how, tokenizer_));
    ExpandedPrompt expanded = expand_images(*rendered, images, how, row.text);
    if (expanded.n_marks != images.size()) return misplaced_images(chat, expanded.n_marks, images.size());
    *rendered = std::move(expanded.prompt);
  }
  if (on_done) on_done(ReadPart::kTemplate);
  auto tokens = text::tokenize_prompt(tokenizer_, *rendered);
  if (!tokens) return fail(std::move(tokens).error(), "messages");
  ReadPrompt read{.tokens = std::move(*tokens)};
  if (!images.empty()) {
    CANDOR_ASSIGN(read.images, place_images(read.tokens, images, row.id, images_->spec()));
  }
  return read;
}

Result<void> PromptReader::read_images(const std::vector<std::string>& files, const char* field,
                                       std::vector<SharedImage>& images) const {
  for (const std::string& file : files) {
    if (images_ == nullptr) {
      return Error{ErrorKind::kUnsupported,
                   "this is a text model, it takes no images: send text alone, or load a model with a vision tower (a "
                   "folder that has one, or a GGUF file with its mmproj file beside it)",
                   field};
    }
    if (images.size() == kMaxImages) {
      return Error{ErrorKind::kInvalidInput,
                   "the prompt holds more than " + std::to_string(kMaxImages) + " images: send fewer", field};
    }
    auto image = images_->read(file, images.size() + 1);
    if (!image) return fail(std::move(image).error(), field);
    images.push_back(std::move(*image));
  }
  return {};
}

Result<std::string> PromptReader::render(const ChatPrompt& chat) const {
  auto rendered = render_marked(chat);
  if (!rendered) return rendered.error();
  return std::move(rendered->text);
}

Result<text::RenderedPrompt> PromptReader::render_marked(const ChatPrompt& chat) const {
  if (!template_) {
    const std::string reason = template_error_.empty() ? "the file has none" : template_error_;
    return Error{ErrorKind::kUnsupported,
                 "messages need a chat template, which this model lacks: " + reason + "; send text instead",
                 "messages"};
  }
  if (chat.messages.empty()) {
    return Error{ErrorKind::kInvalidInput, "there are no messages, expected at least one", "messages"};
  }
  for (const Message& message : chat.messages) {
    if (auto role = check_text(message.role, "a message's role"); !role) return role.error();
    if (auto content = check_text(message.content, "a message's content"); !content) return content.error();
  }
  auto rendered = template_->render(chat, wall_clock_seconds());
  if (!rendered) return fail(std::move(rendered).error(), "messages");
  return std::move(*rendered);
}

}  // namespace candor::engine
