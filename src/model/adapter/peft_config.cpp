#include "model/adapter/peft_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "formats/quote.h"

namespace candor::model {
namespace {

using formats::in_quotes;
using nlohmann::json;

constexpr size_t kMaxPatterns = 4096;
constexpr size_t kMaxExpressions = 64;  // patterns that are more than a name
constexpr size_t kMaxAtoms = 256;

json member(const json& object, const char* key) {
  return object.is_object() && object.contains(key) ? object[key] : json();
}

// One character, or a class of them.
struct Atom {
  std::bitset<256> letters;
  bool may_lack = false;
  bool may_repeat = false;
};

void add_range(std::bitset<256>& letters, char first, char last) {
  for (int c = static_cast<unsigned char>(first); c <= static_cast<unsigned char>(last); ++c) {
    letters.set(static_cast<size_t>(c));
  }
}

// \d, \w, \. and the like; false: none of these.
bool add_escaped(std::bitset<256>& letters, char c) {
  if (c == 'd') return add_range(letters, '0', '9'), true;
  if (c == 'w') {
    for (const auto& [first, last] :
         {std::pair('0', '9'), std::pair('a', 'z'), std::pair('A', 'Z'), std::pair('_', '_')})
      add_range(letters, first, last);
    return true;
  }
  const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return !is_letter && (letters.set(static_cast<unsigned char>(c)), true);
}

// [...], behind its bracket; false: another form.
bool take_class(std::string_view& rest, std::bitset<256>& letters) {
  const size_t end = rest.find(']');
  if (end == std::string_view::npos || end == 0 || rest[0] == '^') return false;
  const std::string_view inside = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\\') {
      if (++i == inside.size() || !add_escaped(letters, inside[i])) return false;
    } else if (i + 2 < inside.size() && inside[i + 1] == '-') {
      if (inside[i] > inside[i + 2]) return false;
      add_range(letters, inside[i], inside[i + 2]);
      i += 2;
    } else {
      letters.set(static_cast<unsigned char>(inside[i]));
    }
  }
  return true;
}

struct Pattern {
  std::vector<Atom> atoms;
  bool is_anchored = false;
};

std::optional<Atom> take_atom(std::string_view& rest) {
  Atom atom;
  const char c = rest.front();
  rest.remove_prefix(1);
  if (c == '.') {
    atom.letters.set();
  } else if (c == '[') {
    if (!take_class(rest, atom.letters)) return std::nullopt;
  } else if (c == '\\') {
    if (rest.empty() || !add_escaped(atom.letters, rest.front())) return std::nullopt;
    rest.remove_prefix(1);
  } else if (std::string_view("()|{}*+?^$]").find(c) != std::string_view::npos) {
    return std::nullopt;
  } else {
    atom.letters.set(static_cast<unsigned char>(c));
  }
  if (!rest.empty() && std::string_view("*+?").find(rest.front()) != std::string_view::npos) {
    atom.may_lack = rest.front() != '+';
    atom.may_repeat = rest.front() != '?';
    rest.remove_prefix(1);
  }
  return atom;
}

std::optional<Pattern> parse(std::string_view text) {
  Pattern pattern;
  if (text.starts_with('^')) {
    pattern.is_anchored = true;
    text.remove_prefix(1);
  }
  if (text.ends_with('$') && !text.ends_with("\\$")) text.remove_suffix(1);
  while (!text.empty()) {
    std::optional<Atom> atom = take_atom(text);
    if (!atom || pattern.atoms.size() == kMaxAtoms) return std::nullopt;
    pattern.atoms.push_back(*atom);
  }
  return pattern;
}

// All places in the pattern at once: a letter costs no more than the pattern is long.
bool fits(const Pattern& pattern, std::string_view text) {
  const size_t n = pattern.atoms.size();
  std::vector<bool> at(n + 1, false), next;
  const auto spread = [&](std::vector<bool>& places) {
    for (size_t i = 0; i < n; ++i) {
      if (places[i] && pattern.atoms[i].may_lack) places[i + 1] = true;
    }
  };
  at[0] = true;
  spread(at);
  for (const char c : text) {
    next.assign(n + 1, false);
    for (size_t i = 0; i < n; ++i) {
      if (!at[i] || !pattern.atoms[i].letters.test(static_cast<unsigned char>(c))) continue;
      next[i + 1] = true;
      if (pattern.atoms[i].may_repeat) next[i] = true;
    }
    spread(next);
    at.swap(next);
  }
  // An atom that repeats stays at its place behind a letter, and may end there.
  return at[n];
}

// Letters, and dots, which fit any letter as in all patterns.
bool is_name(std::string_view pattern) {
  return std::ranges::all_of(pattern, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
  });
}

bool fits_name(std::string_view pattern, std::string_view module) {
  if (pattern.size() > module.size()) return false;
  const std::string_view end = module.substr(module.size() - pattern.size());
  if (end.size() < module.size() && module[module.size() - end.size() - 1] != '.') return false;
  return std::ranges::equal(pattern, end, [](char wanted, char c) { return wanted == '.' || wanted == c; });
}

Error refused(std::string_view name, std::string_view key, const json& seen, std::string_view expected) {
  return fail(ErrorKind::kUnsupported,
              fmt::format("{}: \"{}\" is {}; expected {}", name, key,
                          in_quotes(seen.dump(-1, ' ', false, json::error_handler_t::replace)), expected));
}

// Settings that change what is computed, and what they may say. An empty object or list says nothing.
Result<void> check_settings(const json& config, std::string_view name) {
  struct Row {
    const char* key;
    json plain;
    std::string_view expected;
  };
  const Row rows[] = {{"bias", "none", "\"none\": trained biases are not read"},
                      {"lora_bias", false, "false"},
                      {"use_qalora", false, "false"},
                      {"use_bdlora", nullptr, "null"},
                      {"layer_replication", nullptr, "null: blocks are not copied"},
                      {"alora_invocation_tokens", nullptr, "null: an adapter is used for all of a text"},
                      {"trainable_token_indices", nullptr, "null: single rows of an embedding are not read"},
                      {"arrow_config", nullptr, "null"},
                      {"kasa_config", nullptr, "null"},
                      {"monteclora_config", nullptr, "null"}};
  for (const Row& row : rows) {
    const json seen = member(config, row.key);
    const bool is_empty = (seen.is_object() || seen.is_array()) && seen.empty();
    if (!seen.is_null() && !is_empty && seen != row.plain) return refused(name, row.key, seen, row.expected);
  }
  const json start = member(config, "init_lora_weights");
  if (!start.is_string()) return {};
  for (const std::string_view changes_base : {"pissa", "olora", "corda", "loftq", "lora_ga"}) {
    if (!start.get_ref<const std::string&>().starts_with(changes_base)) continue;
    return refused(name, "init_lora_weights", start,
                   "an adapter of the base model as it is: save it with path_initial_model_for_weight_conversion");
  }
  return {};
}

Result<void> read_alphas(const json& patterns, std::string_view name, PeftConfig& read) {
  if (patterns.is_null()) return {};
  if (!patterns.is_object() || patterns.size() > kMaxPatterns) {
    return refused(name, "alpha_pattern", patterns, "an object of modules and numbers");
  }
  size_t n_expressions = 0;
  for (const auto& [key, alpha] : patterns.items()) {
    CANDOR_TRY(check_module_pattern(key, name));
    if (!is_name(key) && ++n_expressions > kMaxExpressions) {
      return refused(name, "alpha_pattern", patterns.size(), "at most 64 patterns that are more than a name");
    }
    if (!alpha.is_number()) return refused(name, "alpha_pattern", alpha, "numbers");
    read.alphas.emplace_back(key, alpha.get<double>());
  }
  return {};
}

}  // namespace

float PeftConfig::scale_of(std::string_view module, int64_t rank) const {
  double of = alpha;
  for (const auto& [pattern, other] : alphas) {
    if (!fits_module(pattern, module)) continue;
    of = other;
    break;
  }
  const auto n = static_cast<double>(rank);
  return static_cast<float>(of / (divides_by_root ? std::sqrt(n) : n));
}

Result<PeftConfig> read_peft_config(const json& config, std::string_view name) {
  if (!config.is_object()) return refused(name, "(all of it)", config, "an object");
  const json type = member(config, "peft_type");
  if (type != "LORA") return refused(name, "peft_type", type, "\"LORA\"");
  CANDOR_TRY(check_settings(config, name));
  PeftConfig read;
  const json rank = member(config, "r");
  if (rank.is_number() && (rank < 1 || rank > 1 << 20)) return refused(name, "r", rank, "a rank of 1 or more");
  const json alpha = member(config, "lora_alpha");
  if (alpha.is_number()) read.alpha = alpha.get<double>();
  if (!alpha.is_null() && (!alpha.is_number() || !std::isfinite(read.alpha))) {
    return refused(name, "lora_alpha", alpha, "a number");
  }
  read.divides_by_root = member(config, "use_rslora") == true;
  read.has_gains = member(config, "use_dora") == true;
  CANDOR_TRY(read_alphas(member(config, "alpha_pattern"), name, read));
  const json parameters = member(config, "target_parameters");
  if (parameters.is_array() && parameters.size() <= kMaxPatterns) {
    for (const json& each : parameters) {
      if (each.is_string()) read.parameters.push_back(each.get<std::string>());
    }
  }
  return read;
}

Result<void> check_module_pattern(std::string_view pattern, std::string_view name) {
  if (parse(pattern)) return {};
  return fail(ErrorKind::kUnsupported,
              fmt::format("{}: the pattern {} of \"alpha_pattern\" is not read: expected a module's name, perhaps with "
                          "\".\", \\d, [...], *, + and ?",
                          name, in_quotes(pattern)));
}

bool fits_module(std::string_view text, std::string_view module) {
  if (is_name(text)) return fits_name(text, module);
  const std::optional<Pattern> pattern = parse(text);
  if (!pattern) return false;
  if (fits(*pattern, module)) return true;
  for (size_t i = 0; i < module.size() && !pattern->is_anchored; ++i) {
    if (module[i] == '.' && fits(*pattern, module.substr(i + 1))) return true;
  }
  return false;
}

}  // namespace candor::model
