#include "text/tokenizer/space_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "text/tokenizer/char_class.h"
#include "text/tokenizer/vocabulary.h"

namespace candor::text {
namespace {

constexpr std::string_view kPrefixKey = "tokenizer.candor.space_prefix";

Result<bool> flag_or(const formats::ModelFile& file, std::string_view key, bool fallback) {
  CANDOR_ASSIGN(const std::optional<bool> flag, formats::meta_bool(file, key));
  return flag.value_or(fallback);
}

}  // namespace

std::string escape_spaces(std::string_view text) {
  std::string escaped;
  escaped.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ') {
      escaped += kSpaceMark;
    } else {
      escaped += c;
    }
  }
  return escaped;
}

std::string unescape_spaces(std::string_view piece) {
  std::string text;
  for (size_t at = 0; at < piece.size();) {
    const bool is_mark = piece.substr(at, kSpaceMark.size()) == kSpaceMark;
    text += is_mark ? ' ' : piece[at];
    at += is_mark ? kSpaceMark.size() : 1;
  }
  return text;
}

Result<SpaceRules> SpaceRules::from_model_file(const formats::ModelFile& file) {
  SpaceRules rules;
  CANDOR_ASSIGN(const bool adds_prefix, flag_or(file, "tokenizer.ggml.add_space_prefix", true));
  CANDOR_ASSIGN(const std::optional<std::string_view> name, formats::meta_string(file, kPrefixKey));
  rules.prefix_ = adds_prefix ? Prefix::kAfterControl : Prefix::kNever;
  if (name == "each") {
    rules.prefix_ = Prefix::kEach;
  } else if (name == "each_once") {
    rules.prefix_ = Prefix::kEachOnce;
  } else if (name == "first_once") {
    rules.prefix_ = Prefix::kFirstOnce;
  } else if (name == "before_tokens") {
    rules.prefixes_tokens_ = adds_prefix;
  } else if (name) {
    return fail(ErrorKind::kUnsupported,
                fmt::format("{}: {} is not known (known: each, each_once, first_once, before_tokens)", kPrefixKey,
                            quoted_piece(*name)));
  }
  CANDOR_ASSIGN(rules.splits_at_marks_, flag_or(file, "tokenizer.candor.split_at_marks", false));
  CANDOR_ASSIGN(rules.splits_at_white_space_, flag_or(file, "tokenizer.candor.split_at_white_space", false));
  CANDOR_ASSIGN(rules.strips_space_, flag_or(file, "tokenizer.candor.strip_space", rules.prefix_ != Prefix::kNever));
  CANDOR_ASSIGN(rules.has_literal_tokens_, flag_or(file, "tokenizer.candor.literal_tokens", false));
  return rules;
}

bool SpaceRules::needs_prefix(std::string_view escaped, FragmentPlace place) const {
  switch (prefix_) {
    case Prefix::kNever:
      return false;
    case Prefix::kAfterControl:
      return place.follows_control;
    case Prefix::kEach:
      return true;
    case Prefix::kEachOnce:
      return !escaped.starts_with(kSpaceMark);
    case Prefix::kFirstOnce:
      return place.opens_text && !escaped.starts_with(kSpaceMark);
  }
  return false;
}

Missing SpaceRules::for_each_word(std::string_view text, FragmentPlace place, const Use& use) const {
  if (!splits_at_white_space_) return cut_at_marks(text, place, use);
  for (size_t at = 0; at < text.size();) {
    const size_t n_spaces = white_space_prefix(text.substr(at));
    place.opens_text = place.opens_text && n_spaces == 0;
    at += n_spaces;
    const size_t begin = at;
    while (at < text.size() && white_space_prefix(text.substr(at, kMaxSpaceBytes)) == 0) ++at;
    if (at > begin) {
      if (Missing missing = cut_at_marks(text.substr(begin, at - begin), place, use)) return missing;
    }
    place.opens_text = false;
  }
  return {};
}

Missing SpaceRules::cut_at_marks(std::string_view text, FragmentPlace place, const Use& use) const {
  std::string escaped = escape_spaces(text);
  if (needs_prefix(escaped, place)) escaped.insert(0, kSpaceMark);
  std::string_view rest = escaped;
  while (splits_at_marks_ && !rest.empty()) {
    const size_t end = std::min(rest.find(kSpaceMark, 1), rest.size());
    if (Missing missing = use(rest.substr(0, end))) return missing;
    rest.remove_prefix(end);
  }
  return rest.empty() ? Missing() : use(rest);
}

}  // namespace candor::text
