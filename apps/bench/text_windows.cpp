#include "apps/bench/text_windows.h"

#include <algorithm>
#include <utility>

#include "text/tokenizer/tokenizer.h"

namespace candor::apps {
namespace {

// What stands between the separators, without what is empty; the whole text where there is no separator.
std::vector<std::string_view> documents_of(std::string_view text, const std::optional<std::string>& separator) {
  if (!separator) return {text};
  std::vector<std::string_view> documents;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(*separator, begin), text.size());
    const std::string_view one = text.substr(begin, end - begin);
    if (one.find_first_not_of(" \t\r\n") != std::string_view::npos) documents.push_back(one);
    begin = end + separator->size();
  }
  return documents;
}

void add_windows(const std::vector<TokenId>& tokens, const text::SpecialTokens& special, size_t window,
                 TextWindows& windows) {
  const bool adds_bos = special.add_bos && special.bos != kNoToken;
  for (size_t at = 0; at < tokens.size();) {
    std::vector<TokenId> one;
    if (adds_bos && tokens[at] != special.bos) one.push_back(special.bos);
    const size_t end = std::min(at + window - one.size(), tokens.size());
    one.insert(one.end(), tokens.begin() + static_cast<ptrdiff_t>(at), tokens.begin() + static_cast<ptrdiff_t>(end));
    at = end;
    if (one.size() < 2) continue;
    windows.tokens.push_back(std::move(one));
    windows.document.push_back(windows.n_documents - 1);
  }
}

}  // namespace

Result<TextWindows> windows_of(const formats::ModelFile& file, std::string_view text, const WindowOptions& options) {
  auto made = text::Tokenizer::from_model_file(file);
  CANDOR_TRY(file.check_intact());
  CANDOR_ASSIGN(const auto tokenizer, std::move(made));
  TextWindows windows;
  for (const std::string_view document : documents_of(text, options.split_at)) {
    CANDOR_ASSIGN(const std::vector<TokenId> tokens,
                  tokenizer->encode(document, {.add_special = false, .parse_special = options.parse_special}));
    ++windows.n_documents;
    add_windows(tokens, tokenizer->special(), options.n_tokens, windows);
  }
  if (windows.tokens.empty()) return fail(ErrorKind::kInvalidInput, "the text is too short: two tokens at least");
  return windows;
}

}  // namespace candor::apps
