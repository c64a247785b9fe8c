#include "text/chat/pair_template.h"

#include <utility>

#include "base/utf8.h"

namespace candor::text {
namespace {

constexpr std::string_view kQuery = "{query}";
constexpr std::string_view kDocument = "{document}";

}  // namespace

std::optional<PairTemplate> PairTemplate::make(std::string_view source, const Tokenizer& tokenizer) {
  const bool has_both =
      source.find(kQuery) != std::string_view::npos && source.find(kDocument) != std::string_view::npos;
  return has_both ? std::optional<PairTemplate>(PairTemplate(source, tokenizer)) : std::nullopt;
}

Result<RenderedPrompt> PairTemplate::render(std::string_view query, std::string_view document) const {
  const uint32_t mark = choose_mark({source_, query, document});
  if (mark == 0) return fail(ErrorKind::kInvalidInput, "the texts hold every private-use character of Unicode");
  std::string mark_text;
  append_utf8(mark_text, mark);
  std::string marked;
  for (size_t at = 0; at < source_.size();) {
    const std::string_view left = std::string_view(source_).substr(at);
    const bool is_query = left.starts_with(kQuery);
    if (!is_query && !left.starts_with(kDocument)) {
      marked += source_[at++];
      continue;
    }
    marked.append(mark_text).append(is_query ? query : document).append(mark_text);
    at += (is_query ? kQuery : kDocument).size();
  }
  GuardedText plain = guard_.read(marked, mark);
  return RenderedPrompt{std::move(plain.text), std::move(plain.breaks)};
}

}  // namespace candor::text
