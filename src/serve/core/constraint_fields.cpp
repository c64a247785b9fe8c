// response_format, and what other servers call the same.

#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"

namespace candor::serve {
namespace {

std::optional<ConstraintSpec> read_schema(Fields& fields, const Json& format) {
  const auto holder = format.find("json_schema");
  const bool is_object = holder != format.end() && holder->is_object();
  if (!is_object || !holder->contains("schema") || !(*holder)["schema"].is_object()) {
    fields.refuse("response_format", "response_format.json_schema.schema is missing, expected an object");
    return std::nullopt;
  }
  return ConstraintSpec{.kind = GrammarKind::kJsonSchema, .source = to_text((*holder)["schema"])};
}

std::optional<ConstraintSpec> read_format(Fields& fields) {
  const Json* format = fields.object("response_format");
  if (format == nullptr) return std::nullopt;
  const auto type = format->find("type");
  if (type != format->end() && *type == "text") return std::nullopt;
  if (type != format->end() && *type == "json_object") return ConstraintSpec{.kind = GrammarKind::kJsonObject};
  if (type != format->end() && *type == "json_schema") return read_schema(fields, *format);
  fields.refuse("response_format", "response_format.type is not text, json_object or json_schema");
  return std::nullopt;
}

struct OtherName {
  const char* name;
  GrammarKind kind;
};

constexpr OtherName kOtherNames[] = {
    {"guided_json", GrammarKind::kJsonSchema},
    {"json_schema", GrammarKind::kJsonSchema},
    {"json", GrammarKind::kJsonSchema},
    {"guided_regex", GrammarKind::kRegex},
    {"regex", GrammarKind::kRegex},
    {"guided_grammar", GrammarKind::kGbnf},
    {"grammar", GrammarKind::kGbnf},
    {"ebnf", GrammarKind::kGbnf},
    {"guided_choice", GrammarKind::kChoice},
    {"choice", GrammarKind::kChoice},
};

}  // namespace

std::optional<ConstraintSpec> read_constraint(Fields& fields, std::string& name) {
  std::optional<ConstraintSpec> spec = read_format(fields);
  name = "response_format";
  for (const char* other : {"format", "stop_regex", "structural_tag", "guided_whitespace_pattern"}) {
    if (fields.raw(other) != nullptr) fields.refuse(other, fmt::format("{} is not offered, and never dropped", other));
  }
  const auto take = [&](Fields& from, const OtherName& other) {
    const Json* value = from.raw(other.name);
    if (value == nullptr) return;
    if (spec)
      return fields.refuse(other.name, fmt::format("{} comes beside another constraint, expected one", other.name));
    const bool is_text = other.kind == GrammarKind::kRegex || other.kind == GrammarKind::kGbnf;
    if (is_text && !value->is_string()) {
      return fields.refuse(other.name, fmt::format("{} is {}, expected a string", other.name, shown(*value)));
    }
    name = from.path_of(other.name);
    spec = ConstraintSpec{.kind = other.kind,
                          .source = is_text || value->is_string() ? value->get<std::string>() : to_text(*value)};
  };
  for (const OtherName& other : kOtherNames) {
    if (std::string_view(other.name) != "json" && std::string_view(other.name) != "choice") take(fields, other);
  }
  if (const Json* outputs = fields.object("structured_outputs")) {
    Fields inner(*outputs, "structured_outputs");
    for (const OtherName& other : kOtherNames) take(inner, other);
    for (const std::string& other : inner.unknown()) {
      inner.refuse(other.c_str(), fmt::format("structured_outputs.{} is not offered", clipped(other)));
    }
    if (inner.fault()) fields.refuse_with(*inner.fault());
  }
  return spec;
}

}  // namespace candor::serve
