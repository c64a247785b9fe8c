#pragma once
// Turns prompts of every kind (text, chat, token ids) into tokens. Immutable: any thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "candor/request.h"
#include "engine/images/image_reader.h"
#include "engine/images/image_store.h"
#include "engine/request/request_check.h"
#include "formats/model_file.h"
#include "sandbox/helper_pool.h"
#include "text/chat/chat_template.h"
#include "text/chat/pair_template.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::engine {

// What read() does before the tokenizer.
enum class ReadPart : uint8_t { kImages, kTemplate };

class PromptReader {
 public:
  // A file whose template cannot be used still gives a reader; messages are then refused with the reason. The tokenizer
  // and the helpers are borrowed and outlive the reader; the file is only read here.
  // images: nullptr where the model takes none; borrowed as well.
  PromptReader(const formats::ModelFile& file, const text::Tokenizer& tokenizer, sandbox::HelperPool& helpers,
               const ImageReader* images = nullptr);

  // images: Request::images. on_done: called behind each part that the prompt has.
  Result<ReadPrompt> read(const Prompt& prompt, const std::vector<std::string>& images,
                          const std::function<void(ReadPart)>& on_done = {}) const;
  // The text of read_chat(), for people.
  Result<std::string> render(const ChatPrompt& chat) const;

  bool has_template() const { return template_.has_value(); }
  // As the file has it; "" where it has none.
  const std::string& template_source() const { return template_source_; }
  // Why messages are refused although the file has a template; "" otherwise.
  const std::string& template_error() const { return template_error_; }

 private:
  Result<ReadPrompt> read_pair(const PairPrompt& prompt) const;
  Result<ReadPrompt> read_text(const TextPrompt& prompt) const;
  Result<ReadPrompt> read_text_with_images(const TextPrompt& prompt,
                                           const std::function<void(ReadPart)>& on_done) const;
  Result<ReadPrompt> read_chat(const ChatPrompt& chat, const std::function<void(ReadPart)>& on_done) const;
  // Appends to `images`; field: what an error is about.
  Result<void> read_images(const std::vector<std::string>& files, const char* field,
                           std::vector<SharedImage>& images) const;
  Result<ReadPrompt> read_tokens(const TokenPrompt& tokens, const std::vector<std::string>& files,
                                 const std::function<void(ReadPart)>& on_done) const;
  Result<text::RenderedPrompt> render_marked(const ChatPrompt& chat) const;

  const text::Tokenizer& tokenizer_;
  const ImageReader* images_;
  std::optional<text::ChatTemplate> template_;
  std::optional<text::PairTemplate> pairs_;
  std::string template_source_;
  std::string template_error_;
};

}  // namespace candor::engine
