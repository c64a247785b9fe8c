#include "apps/options/constraint_options.h"

#include <fmt/format.h>

#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/options/arguments.h"

namespace candor::apps {
namespace {

constexpr size_t kMaxBytes = 1 << 20;  // what the compiler accepts

Result<std::string> text_or_file(const std::string& value) {
  if (!value.starts_with('@')) return value;
  const std::string path = value.substr(1);
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  if (!file) return fail(ErrorKind::kInvalidInput, fmt::format("{}: cannot be read", path));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.size() <= kMaxBytes) return text;
  return fail(ErrorKind::kInvalidInput, fmt::format("{}: more than {} bytes", path, kMaxBytes));
}

// GBNF defines with ::=, Lark with a colon.
GrammarKind grammar_kind(const std::string& syntax, const std::string& text) {
  if (syntax == "auto") return text.find("::=") != std::string::npos ? GrammarKind::kGbnf : GrammarKind::kLark;
  return syntax == "gbnf" ? GrammarKind::kGbnf : GrammarKind::kLark;
}

}  // namespace

void add_constraint_options(CLI::App& command, ConstraintOptions& o) {
  command.add_option("--json-schema", o.json_schema, "the output is JSON by this schema")->type_name("TEXT|@FILE");
  command.add_flag("--json-object", o.json_object, "the output is a JSON object");
  command.add_option("--regex", o.regex, "the output matches")->type_name("PATTERN");
  command.add_option("--choice", o.choices, "the output is this text; repeat for others")
      ->type_name("TEXT")
      ->expected(1)
      ->take_all();
  command.add_option("--grammar", o.grammar, "the output follows a grammar")->type_name("TEXT|@FILE");
  add_choice(command, "--grammar-syntax", o.grammar_syntax, {"auto", "lark", "gbnf"}, "what the grammar is written in");
}

Result<std::optional<ConstraintSpec>> read_constraint(const ConstraintOptions& o) {
  std::vector<ConstraintSpec> given;
  if (o.json_schema) {
    CANDOR_ASSIGN(std::string text, text_or_file(*o.json_schema));
    given.push_back({GrammarKind::kJsonSchema, std::move(text)});
  }
  if (o.json_object) given.push_back({GrammarKind::kJsonObject, {}});
  if (o.regex) given.push_back({GrammarKind::kRegex, *o.regex});
  if (o.grammar) {
    CANDOR_ASSIGN(std::string text, text_or_file(*o.grammar));
    const GrammarKind kind = grammar_kind(o.grammar_syntax, text);
    given.push_back({kind, std::move(text)});
  }
  if (!o.choices.empty()) {
    const auto replace = nlohmann::json::error_handler_t::replace;
    given.push_back({GrammarKind::kChoice, nlohmann::json(o.choices).dump(-1, ' ', false, replace)});
  }
  if (given.empty()) return std::nullopt;
  if (given.size() == 1) return std::move(given.front());
  return fail(
      ErrorKind::kInvalidInput,
      "give one of --json-schema, --json-object, --regex, --choice and --grammar: the output can obey one only");
}

}  // namespace candor::apps
