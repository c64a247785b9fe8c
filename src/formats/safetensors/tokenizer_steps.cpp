#include "formats/safetensors/tokenizer_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/quote.h"

namespace candor::formats::safetensors {
namespace {

using Json = nlohmann::ordered_json;
using nlohmann::json;

constexpr std::string_view kMark = "\u2581";

struct NamedStep {
  std::string_view type;
  std::string_view step;
};
constexpr NamedStep kPlainSteps[] = {
    {"NFC", "nfc"}, {"NFD", "nfd"}, {"NFKC", "nfkc"}, {"NFKD", "nfkd"}, {"Lowercase", "lowercase"}, {"Nmt", "nmt"}};

// Step and arguments; an empty list where there is no such rule.
std::vector<std::string> normalizer_step(const json& step) {
  const std::string type = type_of(step);
  const auto* plain = std::ranges::find(kPlainSteps, type, &NamedStep::type);
  if (plain != std::end(kPlainSteps)) return {std::string(plain->step), "", ""};
  if (type == "Precompiled") return {"charsmap", text_at(step, "precompiled_charsmap"), ""};
  if (type == "Prepend") return {"prepend", text_at(step, "prepend"), ""};
  if (type == "Strip") {
    const bool left = flag_at(step, "strip_left", true);
    const bool right = flag_at(step, "strip_right", true);
    if (left || right) return {"strip", left && right ? "both" : left ? "left" : "right", ""};
  }
  const std::string expression = pattern_at(step, "Regex");
  if (type == "Replace" && (expression == " {2,}" || expression == "( ){2,}" || expression == "  +")) {
    return {"squeeze", text_at(step, "content"), ""};
  }
  const std::string what = pattern_at(step, "String");
  if (type == "Replace" && !what.empty()) return {"replace", what, text_at(step, "content")};
  return {};
}

bool has_number(const json& step, const char* key, int expected) {
  const auto at = step.find(key);
  return at != step.end() && at->is_number() && *at == expected;
}

bool marks_spaces(const json& step) {
  return type_of(step) == "Replace" && pattern_at(step, "String") == " " && text_at(step, "content") == kMark;
}

class CharacterReader {
 public:
  CharacterReader(const json& tokenizer, std::string_view name) : tokenizer_(tokenizer), name_(name) {}

  Result<CharacterRules> read() {
    CANDOR_TRY(read_normalizer());
    CANDOR_TRY(read_pre_tokenizer());
    if (!marks_) return refuse("normalizer and pre_tokenizer", "without marks for spaces", "Replace, Metaspace");
    CANDOR_TRY(read_decoder());
    return std::move(rules_);
  }

 private:
  Error refuse(std::string_view part, std::string_view seen, std::string_view expected) const {
    return unsupported_part(name_, part, seen, expected);
  }

  // Marks for spaces come last; a mark that is put before the text stands with them.
  Result<void> read_normalizer() {
    const std::vector<json> steps = steps_of(tokenizer_, "normalizer", "normalizers");
    for (const json& step : steps) {
      const bool is_prefix = type_of(step) == "Prepend" && text_at(step, "prepend") == kMark;
      const bool is_late = marks_ || (!rules_.space_prefix.empty() && !marks_spaces(step));
      if (is_late) return refuse("normalizer", type_of(step), "marks for spaces as the last step");
      if (is_prefix) {
        rules_.space_prefix = "each";
      } else if (marks_spaces(step)) {
        marks_ = true;
      } else {
        const std::vector<std::string> plain = normalizer_step(step);
        if (plain.empty()) return refuse("normalizer", step.dump(), "the steps of docs/models.md");
        rules_.normalizer.insert(rules_.normalizer.end(), plain.begin(), plain.end());
      }
    }
    return {};
  }

  Result<void> read_pre_tokenizer() {
    for (const json& step : steps_of(tokenizer_, "pre_tokenizer", "pretokenizers")) {
      const std::string type = type_of(step);
      const bool has_no_space_left = marks_ && type == "Split" && pattern_at(step, "String") == " ";
      if (has_no_space_left) continue;
      if (type == "WhitespaceSplit" && !marks_) {
        rules_.splits_at_white_space = true;
        continue;
      }
      if (type != "Metaspace" || marks_ || text_at(step, "replacement") != kMark) {
        return refuse("pre_tokenizer", step.dump(), "WhitespaceSplit, Metaspace");
      }
      CANDOR_TRY(read_metaspace(step));
    }
    return {};
  }

  // Files of before 2024 have add_prefix_space instead of prepend_scheme.
  Result<void> read_metaspace(const json& step) {
    marks_ = true;
    std::string scheme = text_at(step, "prepend_scheme");
    if (scheme.empty()) scheme = flag_at(step, "add_prefix_space", true) ? "always" : "never";
    rules_.splits_at_marks = flag_at(step, "split", true);
    if (scheme == "always") {
      rules_.space_prefix = "each_once";
    } else if (scheme == "first") {
      rules_.space_prefix = "first_once";
    } else if (scheme != "never") {
      return refuse("pre_tokenizer Metaspace with prepend_scheme", scheme, "always, first, never");
    }
    return {};
  }

  Result<void> read_decoder() {
    for (const json& step : steps_of(tokenizer_, "decoder", "decoders")) {
      const std::string type = type_of(step);
      if (type == "ByteFallback" || type == "Fuse") continue;
      if (type == "Replace" && pattern_at(step, "String") == kMark && text_at(step, "content") == " ") continue;
      if (type == "Strip" && text_at(step, "content") == " " && has_number(step, "start", 1) &&
          has_number(step, "stop", 0)) {
        rules_.strips_space = true;
        continue;
      }
      // Of an unsplit text it drops every mark of the first token.
      if (type != "Metaspace" || !rules_.splits_at_marks)
        return refuse("decoder", step.dump(),
                      "Replace of marks, ByteFallback, Fuse, Strip of one space, Metaspace behind split words");
      rules_.strips_space = text_at(step, "prepend_scheme") != "never" && flag_at(step, "add_prefix_space", true);
    }
    return {};
  }

  const json& tokenizer_;
  std::string_view name_;
  CharacterRules rules_;
  bool marks_ = false;
};

}  // namespace

std::string type_of(const json& part) {
  return part.is_object() ? text_at(part, "type") : std::string();
}

bool flag_at(const json& object, const char* key, bool fallback) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() ? at->get<bool>() : fallback;
}

std::string text_at(const json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : std::string();
}

std::string pattern_at(const json& step, const char* kind) {
  const auto at = step.find("pattern");
  return at != step.end() && at->is_object() ? text_at(*at, kind) : std::string();
}

std::vector<json> steps_of(const json& tokenizer, const char* member, const char* inner) {
  const auto at = tokenizer.find(member);
  if (at == tokenizer.end() || at->is_null()) return {};
  if (type_of(*at) != "Sequence") return {*at};
  const auto list = at->find(inner);
  return list != at->end() && list->is_array() ? list->get<std::vector<json>>() : std::vector<json>{*at};
}

Error unsupported_part(std::string_view name, std::string_view part, std::string_view seen, std::string_view expected) {
  return {ErrorKind::kUnsupported, fmt::format("{}: tokenizer.json: {} {} is not supported (supported: {})", name, part,
                                               in_quotes(seen), expected)};
}

Result<CharacterRules> read_character_rules(const json& tokenizer, std::string_view name) {
  return CharacterReader(tokenizer, name).read();
}

Result<std::vector<std::string>> read_word_rules(const json& tokenizer, std::string_view name) {
  std::vector<std::string> result;
  const auto add = [&](std::string_view step) { result.insert(result.end(), {std::string(step), "", ""}); };
  for (const json& step : steps_of(tokenizer, "normalizer", "normalizers")) {
    if (type_of(step) != "BertNormalizer") {
      const std::vector<std::string> plain = normalizer_step(step);
      if (plain.empty()) return unsupported_part(name, "normalizer", step.dump(), "the steps of docs/models.md");
      result.insert(result.end(), plain.begin(), plain.end());
      continue;
    }
    const bool lowers = flag_at(step, "lowercase", true);
    if (flag_at(step, "clean_text", true)) add("clean");
    if (flag_at(step, "handle_chinese_chars", true)) add("part_ideographs");
    if (flag_at(step, "strip_accents", lowers)) {
      add("nfd");
      add("drop_accents");
    }
    if (lowers) add("lowercase");
  }
  const std::vector<json> cuts = steps_of(tokenizer, "pre_tokenizer", "pretokenizers");
  if (cuts.size() != 1 || type_of(cuts[0]) != "BertPreTokenizer") {
    return unsupported_part(name, "pre_tokenizer", cuts.empty() ? "null" : type_of(cuts[0]), "BertPreTokenizer");
  }
  for (const json& step : steps_of(tokenizer, "decoder", "decoders")) {
    if (type_of(step) != "WordPiece") return unsupported_part(name, "decoder", type_of(step), "WordPiece");
  }
  return result;
}

Result<ByteRules> read_byte_rules(const json& tokenizer, std::string_view name) {
  ByteRules rules;
  CANDOR_ASSIGN(rules.words, read_split_rules(tokenizer, name));
  for (const json& step : steps_of(tokenizer, "normalizer", "normalizers")) {
    const std::vector<std::string> plain = normalizer_step(step);
    if (plain.empty()) return unsupported_part(name, "normalizer", step.dump(), "the steps of docs/models.md");
    rules.normalizer.insert(rules.normalizer.end(), plain.begin(), plain.end());
  }
  if (rules.words.adds_space) rules.normalizer.insert(rules.normalizer.end(), {"space_first", "", ""});
  const std::vector<json> decoders = steps_of(tokenizer, "decoder", "decoders");
  if (decoders.size() != 1 || type_of(decoders[0]) != "ByteLevel") {
    return unsupported_part(name, "decoder", decoders.empty() ? "null" : type_of(decoders[0]), "ByteLevel");
  }
  return rules;
}

nlohmann::ordered_json normalizer_json(std::string_view step, std::string_view first, std::string_view second) {
  const auto* plain = std::ranges::find(kPlainSteps, step, &NamedStep::step);
  if (plain != std::end(kPlainSteps)) return {{"type", plain->type}};
  if (step == "space_first") return {{"type", step}};  // no normalizer there: the writer puts it elsewhere
  if (step == "charsmap") return {{"type", "Precompiled"}, {"precompiled_charsmap", first}};
  if (step == "prepend") return {{"type", "Prepend"}, {"prepend", first}};
  if (step == "strip") return {{"type", "Strip"}, {"strip_left", first != "right"}, {"strip_right", first != "left"}};
  if (step == "squeeze") return {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", first}};
  return {{"type", "Replace"}, {"pattern", {{"String", first}}}, {"content", second}};
}

}  // namespace candor::formats::safetensors
