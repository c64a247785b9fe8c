#include "formats/safetensors/tokenizer_splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "formats/model_file.h"
#include "formats/safetensors/tokenizer_steps.h"

namespace candor::formats::safetensors {
namespace {

using Json = nlohmann::ordered_json;
using nlohmann::json;

// The expression of a Split and the name of the rule that the tokenizer has for it. `whole`: with ignore_merges; the
// one that is empty is said by whole_first. Every character is in some match, but for what skips some.
struct Split {
  std::string_view expression;
  std::string_view name;
  std::string_view whole;
  bool skips = false;
};
constexpr std::string_view kGpt2Words =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr Split kSplits[] = {
    {kGpt2Words, "gpt-2", ""},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "dbrx", "llama-bpe"},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen2", ""},
    {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "qwen35", ""},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "gpt-4o", ""},
    {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "", "tekken"},
    {R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
     "kimi-k2", "", true},
    {" ?[^(\\s|[.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c])]+", "bloom", "", true},
};

// Splits one after another, as DeepSeek V3 and R1 have them; the last has line ends as they are.
struct SplitSequence {
  std::array<std::string_view, 3> expressions;
  std::string_view name;
};
constexpr SplitSequence kSequences[] = {
    {{R"(\p{N}{1,3})", "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
      "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| "
      "?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"},
     "deepseek-v3"},
};


struct NamedBehavior {
  std::string_view published;
  std::string_view name;
};
constexpr NamedBehavior kBehaviors[] = {{"Isolated", "isolated"},
                                        {"Removed", "removed"},
                                        {"MergedWithPrevious", "merged_with_previous"},
                                        {"MergedWithNext", "merged_with_next"},
                                        {"Contiguous", "contiguous"}};

// A text as the expression that matches it.
std::string escaped(std::string_view text) {
  constexpr std::string_view kSigns = R"(\.+*?()|[]{}^$#&-~)";
  std::string expression;
  for (const char c : text) {
    if (kSigns.find(c) != std::string_view::npos) expression += '\\';
    expression += c;
  }
  return expression;
}

// Contractions as tiktoken writes them; the alternatives exclude one another.
std::string usual_form(std::string expression) {
  constexpr std::string_view kOther = "'(?i:[sdmt]|ll|ve|re)";
  constexpr std::string_view kUsual = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
  for (size_t at = expression.find(kOther); at != std::string::npos; at = expression.find(kOther, at + 1)) {
    expression.replace(at, kOther.size(), kUsual);
  }
  return expression;
}

const Split* find_split(const std::string& expression) {
  const auto* found = std::ranges::find(kSplits, usual_form(expression), &Split::expression);
  return found == std::end(kSplits) ? nullptr : found;
}

bool is_isolated_split(const json& step) {
  return type_of(step) == "Split" && text_at(step, "behavior") == "Isolated";
}

// Of a Split by one expression that leaves nothing out, what does not match is nothing.
bool keeps_all_matches(const json& step, const Split& split) {
  const bool keeps = text_at(step, "behavior") == "Removed" && flag_at(step, "invert", false) && !split.skips;
  return type_of(step) == "Split" && keeps;
}

// Of steps before the last one; "" where they are no known sequence.
std::string_view sequence_name(const std::vector<json>& steps) {
  for (const SplitSequence& sequence : kSequences) {
    bool agrees = steps.size() == sequence.expressions.size() + 1;
    for (size_t i = 0; agrees && i < sequence.expressions.size(); ++i) {
      agrees = is_isolated_split(steps[i]) && pattern_at(steps[i], "Regex") == sequence.expressions[i];
    }
    if (agrees) return sequence.name;
  }
  return {};
}

// The rule that has a scanner; "" where there is none.
SplitRules named_rules(const std::vector<json>& steps, bool is_whole) {
  const auto named = [&](std::string_view name) {
    return SplitRules{.name = std::string(name), .whole_first = is_whole ? std::optional(true) : std::nullopt};
  };
  const bool own_rule = flag_at(steps.back(), "use_regex", true);
  const bool by_digit =
      steps.size() == 2 && type_of(steps[0]) == "Digits" && flag_at(steps[0], "individual_digits", false);
  if (own_rule) return steps.size() == 1 ? named("gpt-2") : by_digit ? named("starcoder") : SplitRules();
  const std::string_view sequence = sequence_name(steps);
  if (!sequence.empty()) return named(sequence);
  const Split* split = steps.size() == 2 ? find_split(pattern_at(steps[0], "Regex")) : nullptr;
  if (split == nullptr || !(is_isolated_split(steps[0]) || keeps_all_matches(steps[0], *split))) return {};
  const std::string_view own = is_whole ? split->whole : split->name;
  if (!own.empty()) return {.name = std::string(own)};
  return {.name = std::string(is_whole ? split->name : split->whole), .whole_first = is_whole};
}

// Behavior, "invert" or "", expression; nothing for a step that is not known.
std::vector<std::string> general_step(const json& step) {
  const std::string type = type_of(step);
  const auto behavior = [&](const char* fallback) {
    const std::string published = step.contains("behavior") ? text_at(step, "behavior") : fallback;
    const auto* known = std::ranges::find(kBehaviors, published, &NamedBehavior::published);
    return std::string(known == std::end(kBehaviors) ? std::string_view() : known->name);
  };
  if (type == "Split") {
    const std::string text = pattern_at(step, "String");
    const std::string expression = text.empty() ? pattern_at(step, "Regex") : escaped(text);
    const std::string name = behavior("");
    if (expression.empty() || name.empty()) return {};
    return {name, flag_at(step, "invert", false) ? "invert" : "", expression};
  }
  if (type == "Digits") return {flag_at(step, "individual_digits", false) ? "isolated" : "contiguous", "", R"(\p{N})"};
  if (type == "Punctuation" && !behavior("Isolated").empty()) {
    return {behavior("Isolated"), "", R"([$+<=>^`|~[\p{P}&&\p{Age=8.0}]])"};
  }
  if (type == "WhitespaceSplit") return {"removed", "", R"(\s)"};
  if (type == "Whitespace") return {"removed", "invert", R"(\w+|[^\w\s]+)"};
  if (type == "CharDelimiterSplit" && !text_at(step, "delimiter").empty()) {
    return {"removed", "", escaped(text_at(step, "delimiter"))};
  }
  return {};
}

Result<SplitRules> general_rules(const std::vector<json>& steps, std::string_view name) {
  SplitRules rules{.name = std::string(kGeneralSplits), .is_general = true};
  bool over_bytes = false;
  for (const json& step : steps) {
    const bool is_bytes = type_of(step) == "ByteLevel";
    std::vector<std::string> one;
    if (is_bytes && flag_at(step, "use_regex", true)) {
      one = {"isolated", "", std::string(kGpt2Words)};
    } else if (!is_bytes) {
      one = general_step(step);
      if (over_bytes && one.size() == 3) one[1] = one[1].empty() ? "bytes" : "invert bytes";
    }
    if ((is_bytes && over_bytes) || (!is_bytes && one.empty())) {
      return unsupported_part(name, "pre_tokenizer", step.dump(), "the steps of docs/models.md");
    }
    over_bytes = over_bytes || is_bytes;
    rules.steps.insert(rules.steps.end(), one.begin(), one.end());
  }
  if (!over_bytes) return unsupported_part(name, "pre_tokenizer", "without ByteLevel", "ByteLevel");
  return rules;
}

Json isolated(std::string_view expression) {
  return {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}, {"invert", false}};
}

std::optional<Json> named_split_json(std::string_view name) {
  constexpr std::string_view kAliases[][2] = {
      {"llama3", "llama-bpe"}, {"llama-v3", "llama-bpe"}, {"smollm", "starcoder"}, {"deepseek-r1-qwen", "qwen2"}};
  for (const auto& [alias, rule] : kAliases) {
    if (alias == name) name = rule;
  }
  Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  if (name == "gpt-2") return Json{{"pre_tokenizer", bytes}, {"ignore_merges", false}};
  const auto sequence = [&](Json first) {
    return Json{{"type", "Sequence"}, {"pretokenizers", {std::move(first), bytes}}};
  };
  if (name == "starcoder") {
    return Json{{"pre_tokenizer", sequence({{"type", "Digits"}, {"individual_digits", true}})},
                {"ignore_merges", false}};
  }
  bytes["use_regex"] = false;
  for (const Split& split : kSplits) {
    if (split.name != name && split.whole != name) continue;
    return Json{{"pre_tokenizer", sequence(isolated(split.expression))}, {"ignore_merges", split.whole == name}};
  }
  for (const SplitSequence& known : kSequences) {
    if (known.name != name) continue;
    Json steps = Json::array();
    for (const std::string_view expression : known.expressions) steps.push_back(isolated(expression));
    steps.push_back(bytes);
    return Json{{"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}}},
                {"ignore_merges", false}};
  }
  return std::nullopt;
}

Json general_split_json(const std::vector<std::string_view>& strings) {
  Json list = Json::array();
  const Json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  bool over_bytes = false;
  for (size_t i = 0; i + 2 < strings.size(); i += 3) {
    if (!over_bytes && strings[i + 1].ends_with("bytes")) {
      list.push_back(bytes);
      over_bytes = true;
    }
    Json step = isolated(strings[i + 2]);
    const auto* known = std::ranges::find(kBehaviors, strings[i], &NamedBehavior::name);
    if (known != std::end(kBehaviors)) step["behavior"] = known->published;
    step["invert"] = strings[i + 1].starts_with("invert");
    list.push_back(std::move(step));
  }
  if (!over_bytes) list.push_back(bytes);
  if (list.size() == 1) return list[0];
  return {{"type", "Sequence"}, {"pretokenizers", std::move(list)}};
}

}  // namespace

Result<SplitRules> read_split_rules(const json& tokenizer, std::string_view name) {
  const std::vector<json> steps = steps_of(tokenizer, "pre_tokenizer", "pretokenizers");
  const bool is_whole = flag_at(tokenizer["model"], "ignore_merges", false);
  const auto is_bytes = [](const json& step) { return type_of(step) == "ByteLevel"; };
  if (std::ranges::none_of(steps, is_bytes)) {
    return unsupported_part(name, "pre_tokenizer", steps.empty() ? "null" : type_of(steps.back()), "ByteLevel");
  }
  const auto adds_space = [&](const json& step) { return is_bytes(step) && flag_at(step, "add_prefix_space", true); };
  const bool adds = std::ranges::any_of(steps, adds_space);
  if (adds && steps.size() > 1) {
    return unsupported_part(name, "pre_tokenizer", "add_prefix_space behind other steps", "without");
  }
  SplitRules rules = is_bytes(steps.back()) ? named_rules(steps, is_whole) : SplitRules();
  if (rules.name.empty()) {
    CANDOR_ASSIGN(rules, general_rules(steps, name));
    rules.whole_first = is_whole;
  }
  rules.adds_space = adds;
  return rules;
}

SplitRules split_rules_of(std::string_view expression, bool whole_first) {
  const Split* split = find_split(std::string(expression));
  if (split != nullptr) {
    const std::string_view name = split->name.empty() ? split->whole : split->name;
    return {.name = std::string(name), .whole_first = whole_first};
  }
  return {.name = std::string(kGeneralSplits),
          .steps = {"isolated", "", std::string(expression)},
          .is_general = true,
          .whole_first = whole_first};
}

Result<std::optional<Json>> split_json(const ModelFile& file) {
  CANDOR_ASSIGN(const auto* steps, meta_strings(file, "tokenizer.candor.splits"));
  CANDOR_ASSIGN(const auto name, meta_string(file, "tokenizer.ggml.pre"));
  CANDOR_ASSIGN(const auto whole, meta_bool(file, "tokenizer.candor.whole_piece_first"));
  std::optional<Json> result;
  if (steps != nullptr) {
    result = Json{{"pre_tokenizer", general_split_json(*steps)}, {"ignore_merges", false}};
  } else {
    result = named_split_json(name.value_or("default"));
  }
  if (result && whole) (*result)["ignore_merges"] = *whole;
  return result;
}

}  // namespace candor::formats::safetensors
