#pragma once
// A model's chat template (Jinja): messages become the prompt that the model was trained on. The text that a client
// wrote stays text: a control token typed in a message never becomes that token, although the template's own do.
//
// How: before rendering, every place in a client's string where a control token begins (or might begin and be completed
// by what follows) gets a private-use character behind its first character, one that occurs nowhere else. It travels
// through the template; afterwards it is removed and its places are the prompt's `breaks`. Strings without such places
// are rendered as they are, and the prompt is then tokenised exactly as encode(text, parse_special) does.
// Templates are immutable: any thread may render. They come from the model file, never from a client.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "text/chat/control_guard.h"
#include "text/tokenizer/tokenizer.h"

struct candor_template;

namespace candor::text {

struct ChatMessage {
  std::string role;
  std::string content;
  // A JSON object whose keys join the message: "name", "tool_calls", "tool_call_id", "reasoning_content"; a "content"
  // here replaces the one above (null, or a list of parts). Empty: none.
  std::string extra_json = {};
};

struct RenderOptions {
  bool add_generation_prompt = true;
  bool continue_final = false;   // the prompt ends where the last message's content does; no generation prompt then
  std::string tools_json = {};   // a JSON array; empty: none
  std::string kwargs_json = {};  // a JSON object: further variables of the template; empty: none
  int64_t now_seconds = 0;       // what strftime_now shows: seconds since 1970 of the wall clock to show
};

struct RenderedPrompt {
  std::string text;
  std::vector<size_t> breaks;  // EncodeOptions::breaks
};

class ChatTemplate {
 public:
  // A template that does not compile is an error of its own: the model stays usable without messages.
  static Expected<ChatTemplate> compile(std::string_view source, const Tokenizer& tokenizer);

  // kInvalidInput: what the messages lack, or the words that the template gives to raise_exception. kUnsupported: a
  // fault of the template itself, with its line.
  Expected<RenderedPrompt> render(std::span<const ChatMessage> messages, const RenderOptions& options) const;

 private:
  struct Free {
    void operator()(candor_template* handle) const;
  };

  ChatTemplate(candor_template* handle, std::string_view source, const Tokenizer& tokenizer);

  std::unique_ptr<candor_template, Free> handle_;
  std::string source_;
  ControlGuard guard_;
  std::vector<std::pair<std::string, std::string>>
      special_pieces_;  // "bos_token" and the like, as the template knows them
};

// The prompt's ids. Where the model's rules add a beginning token, there is exactly one, whether the template writes it
// or not.
std::vector<TokenId> tokenize_prompt(const Tokenizer& tokenizer, const RenderedPrompt& prompt);

}  // namespace candor::text
