#include "serve/core/infill_prompt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "candor/info.h"

namespace candor::serve {
namespace {

constexpr std::string_view kRepoName = "project\n";  // nobody says which
constexpr int64_t kPrefixShare = 3;                  // of four parts, where not all fits
constexpr int64_t kSuffixShare = 1;

using Tokens = TokenPrompt;

Result<Tokens> plain(const Engine& engine, std::string text) {
  return engine.tokenize(TextPrompt{.text = std::move(text), .add_special = false});
}

void append(Tokens& all, const Tokens& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// One file of the surroundings, behind the mark of a file where the vocabulary has it.
Result<Tokens> tokens_of(const Engine& engine, const InfillExtra& extra) {
  const TokenId mark = engine.info().fim.separator;
  const std::string title = mark >= 0 ? extra.name + "\n" : "\n\n--- snippet ---\n\n";
  auto text = plain(engine, title + extra.text);
  if (!text) return text.error();
  if (mark >= 0) text->insert(text->begin(), mark);
  return std::move(*text);
}

struct Parts {
  Tokens prefix;
  Tokens suffix;
  std::vector<Tokens> extras;  // in order
};

Result<Parts> tokenize(const Engine& engine, const InfillTexts& texts) {
  Parts parts;
  auto prefix = plain(engine, texts.prefix);
  if (!prefix) return fail(prefix.error(), texts.names.prefix);
  auto suffix = plain(engine, texts.suffix);
  if (!suffix) return fail(suffix.error(), texts.names.suffix);
  parts.prefix = std::move(*prefix);
  parts.suffix = std::move(*suffix);
  for (const InfillExtra& extra : texts.extras) {
    auto tokens = tokens_of(engine, extra);
    if (!tokens) return fail(tokens.error(), texts.names.extras);
    parts.extras.push_back(std::move(*tokens));
  }
  return parts;
}

// Only what stands nearest to the gap stays: the prefix's end, the suffix's beginning, the last files.
void fit(Parts& parts, const InfillNames& names, int64_t room, std::vector<std::string>& warnings) {
  const int64_t n_prefix = std::ssize(parts.prefix);
  const int64_t n_suffix = std::ssize(parts.suffix);
  if (n_prefix + n_suffix > room) {
    const int64_t share = room * kSuffixShare / (kPrefixShare + kSuffixShare);
    const int64_t kept_suffix = std::min(n_suffix, std::max(share, room - n_prefix));
    const int64_t kept_prefix = std::min(n_prefix, room - kept_suffix);
    parts.prefix.erase(parts.prefix.begin(), parts.prefix.end() - kept_prefix);
    parts.suffix.resize(static_cast<size_t>(kept_suffix));
    warnings.push_back(fmt::format("the context has room for {} tokens: of {} the last {} of {} are read, of {} the "
                                   "first {} of {}",
                                   room, names.prefix, kept_prefix, n_prefix, names.suffix, kept_suffix, n_suffix));
  }
  int64_t left = room - std::ssize(parts.prefix) - std::ssize(parts.suffix);
  size_t first = parts.extras.size();
  while (first > 0 && std::ssize(parts.extras[first - 1]) <= left) left -= std::ssize(parts.extras[--first]);
  if (first == 0) return;
  warnings.push_back(fmt::format("the context has no room for the first {} of {} texts of {}", first,
                                 parts.extras.size(), names.extras));
  parts.extras.erase(parts.extras.begin(), parts.extras.begin() + static_cast<std::ptrdiff_t>(first));
}

// bos, the surroundings, then: prefix mark, prefix, suffix mark, suffix, middle mark.
Result<Tokens> join(const Engine& engine, const Parts& parts) {
  const ModelInfo& info = engine.info();
  Tokens all;
  if (info.adds_bos) all.push_back(info.bos);
  if (!parts.extras.empty() && info.fim.repo >= 0) {
    const auto name = plain(engine, std::string(kRepoName));
    if (!name) return name.error();
    all.push_back(info.fim.repo);
    append(all, *name);
  }
  for (const Tokens& extra : parts.extras) append(all, extra);
  if (!parts.extras.empty() && info.fim.separator >= 0) {
    const auto name = plain(engine, "filename\n");
    if (!name) return name.error();
    all.push_back(info.fim.separator);
    append(all, *name);
  }
  all.push_back(info.fim.prefix);
  append(all, parts.prefix);
  all.push_back(info.fim.suffix);
  append(all, parts.suffix);
  all.push_back(info.fim.middle);
  return all;
}

// The answer ends where the model goes on to another file.
void stop_at_marks(const FimTokens& fim, SamplingParams& sampling) {
  for (const TokenId mark : {fim.pad, fim.repo, fim.separator, fim.prefix, fim.suffix, fim.middle}) {
    if (mark >= 0) sampling.stop_ids.push_back(mark);
  }
}

// For the text: what the context holds without marks, names of files and the answer.
int64_t room_for(const Engine& engine, const SamplingParams& sampling) {
  constexpr int64_t kMarks = 64;
  const int64_t n_ctx = engine.info().n_ctx;
  const int64_t n_answer = std::min(sampling.max_tokens.value_or(n_ctx / 4), n_ctx / 2);
  return std::max<int64_t>(1, n_ctx - n_answer - std::min(kMarks, n_ctx / 8));
}

}  // namespace

Result<TokenPrompt> infill_prompt(const Engine& engine, const InfillTexts& texts, SamplingParams& sampling,
                                  std::vector<std::string>& warnings) {
  if (!engine.info().fim.exist()) {
    return fail(ErrorKind::kUnsupported,
                "this model's vocabulary has no marks for filling in (prefix, suffix, middle); use /completion, or a "
                "model that was trained to fill in");
  }
  auto parts = tokenize(engine, texts);
  if (!parts) return parts.error();
  fit(*parts, texts.names, room_for(engine, sampling), warnings);
  auto tokens = join(engine, *parts);
  if (!tokens) return tokens.error();
  stop_at_marks(engine.info().fim, sampling);
  return tokens;
}

}  // namespace candor::serve
