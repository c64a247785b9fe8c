#include "engine/request/prompt_reader.h"

#include <chrono>
#include <cstdint>
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

Result<ReadPrompt> PromptReader::read(const Prompt& prompt, const std::function<void()>& on_rendered) const {
  if (const auto* pair = std::get_if<PairPrompt>(&prompt)) return read_pair(*pair);
  const auto* text = std::get_if<TextPrompt>(&prompt);
  const auto* chat = std::get_if<ChatPrompt>(&prompt);
  if (chat != nullptr) return read_chat(*chat, on_rendered);
  auto tokens = text != nullptr ? read_text(*text) : read_tokens(std::get<TokenPrompt>(prompt));
  if (!tokens) return tokens.error();
  return ReadPrompt{.tokens = std::move(*tokens)};
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

Result<std::vector<TokenId>> PromptReader::read_text(const TextPrompt& prompt) const {
  if (auto checked = check_text(prompt.text, "the prompt"); !checked) return checked.error();
  text::EncodeOptions options;
  options.add_special = prompt.add_special;
  options.parse_special = prompt.parse_special;
  auto tokens = tokenizer_.encode(prompt.text, options);
  if (!tokens) return fail(std::move(tokens).error(), "prompt");
  return std::move(*tokens);
}

Result<std::vector<TokenId>> PromptReader::read_tokens(const TokenPrompt& tokens) const {
  if (auto checked = check_tokens(tokens, tokenizer_); !checked) return checked.error();
  return tokens;
}

Result<ReadPrompt> PromptReader::read_chat(const ChatPrompt& chat, const std::function<void()>& on_rendered) const {
  const auto images = read_images(chat);
  if (!images) return images.error();
  auto rendered = render_marked(chat);
  if (!rendered) return rendered.error();
  RowToken row;
  if (!images->empty()) {
    const vision::ImagePrompt& how = images_->spec().prompt;
    CANDOR_ASSIGN(row, find_row_token(how, tokenizer_));
    CANDOR_ASSIGN(*rendered, expand_images(*rendered, *images, how, row.text));
  }
  if (on_rendered) on_rendered();
  auto tokens = text::tokenize_prompt(tokenizer_, *rendered);
  if (!tokens) return fail(std::move(tokens).error(), "messages");
  ReadPrompt read{.tokens = std::move(*tokens)};
  if (!images->empty()) {
    CANDOR_ASSIGN(read.images, place_images(read.tokens, *images, row.id, images_->spec()));
  }
  return read;
}

Result<std::vector<SharedImage>> PromptReader::read_images(const ChatPrompt& chat) const {
  std::vector<SharedImage> images;
  for (const Message& message : chat.messages) {
    for (const std::string& file : message.images) {
      if (images_ == nullptr) {
        return Error{
            ErrorKind::kUnsupported,
            "this is a text model, it takes no images: send text alone, or load a model with a vision tower (a "
            "folder that has one, or a GGUF file with its mmproj file beside it)",
            "messages"};
      }
      if (images.size() == kMaxImages) {
        return Error{ErrorKind::kInvalidInput,
                     "the messages hold more than " + std::to_string(kMaxImages) + " images: send fewer", "messages"};
      }
      CANDOR_ASSIGN(SharedImage image, images_->read(file, images.size() + 1));
      images.push_back(std::move(image));
    }
  }
  return images;
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
