#pragma once
// A model's chat template (Jinja): messages become the prompt that the model was trained on. The text that a client
// wrote stays text: a control token typed in a message never becomes that token, although the template's own do.
//
// How: the engine of the templates knows of every character of the prompt whether a client wrote it, whatever the
// template does with it: a template may search and split a content by its own markers (`content.split('</think>')`),
// and renders what it would render elsewhere. Where a control token in the prompt has a byte of a client in it, a break
// keeps it text: also where one begins in the template's words and a client's complete it. Well-known roles ("user")
// count as the template's words. A prompt without such places is tokenised exactly as encode(text, parse_special) does.
// Templates are immutable: any thread may render. They come from the model file, never from a client, and run in a
// helper process: one that takes too much time or memory is an error of the call that it was rendered for.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/ids.h"
#include "candor/request.h"
#include "sandbox/helper_pool.h"
#include "text/chat/control_guard.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::text {

struct RenderedPrompt {
  std::string text;
  std::vector<size_t> breaks;  // EncodeOptions::breaks
};

class ChatTemplate {
 public:
  // A template that does not compile is an error of its own: the model stays usable without messages.
  // Where no helper can be had, that is left for render() to say. The helpers are borrowed and outlive the template.
  static Result<ChatTemplate> compile(std::string_view source, const Tokenizer& tokenizer,
                                      sandbox::HelperPool& helpers);

  // kInvalidInput: what the messages lack, the words that the template gives to raise_exception, or a limit on its
  // work. kUnsupported: a fault of the template itself, with its line. Others: as HelperPool has them.
  // now_seconds: what strftime_now shows, seconds since 1970 of the wall clock to show.
  Result<RenderedPrompt> render(const ChatPrompt& chat, int64_t now_seconds) const;

 private:
  ChatTemplate(sandbox::SharedAsset source, const Tokenizer& tokenizer, sandbox::HelperPool& helpers);

  sandbox::HelperPool* helpers_;
  sandbox::SharedAsset source_;
  ControlGuard guard_;
  std::vector<std::pair<std::string, std::string>>
      special_pieces_;  // "bos_token" and the like, as the template knows them
};

// The prompt's ids. Where the model's rules add a beginning token, there is exactly one, whether the template writes it
// or not. Fails where the vocabulary has no token for a byte of it.
Result<std::vector<TokenId>> tokenize_prompt(const Tokenizer& tokenizer, const RenderedPrompt& prompt);

}  // namespace candor::text
