// POST /infill: what stands between two texts, as the vocabulary's marks ask for it.

#include <fmt/format.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/infill_prompt.h"
#include "serve/core/json_body.h"
#include "serve/core/request_terms.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

constexpr size_t kMaxExtras = 4096;

InfillTexts read_texts(Fields& fields) {
  InfillTexts texts;
  for (const char* name : {"input_prefix", "input_suffix"}) {
    if (!fields.has(name)) fields.refuse(name, fmt::format("{} is missing, expected a text", name));
  }
  texts.prefix = fields.text("input_prefix").value_or("") + fields.text("prompt").value_or("");
  texts.suffix = fields.text("input_suffix").value_or("");
  const Json* extras = fields.array("input_extra");
  if (extras == nullptr) return texts;
  if (extras->size() > kMaxExtras)
    fields.refuse("input_extra",
                  fmt::format("input_extra has {} elements, expected at most {}", extras->size(), kMaxExtras));
  for (const Json& item : *extras) {
    if (!item.is_object()) {
      fields.refuse("input_extra",
                    fmt::format("input_extra holds {}, expected objects with filename and text", shown(item)));
      return texts;
    }
    Fields inner(item, "input_extra[]");
    const auto name = inner.text("filename");
    const auto text = inner.text("text");
    if (!text) inner.refuse("text", "input_extra holds an object without text, expected a string");
    if (inner.fault()) fields.refuse_with({inner.fault()->kind, inner.fault()->message, "input_extra"});
    texts.extras.push_back({name.value_or("tmp"), text.value_or("")});
  }
  return texts;
}

}  // namespace

Result<ApiRequest> parse_infill(const Json& body, const RequestTerms& terms) {
  const std::optional<Json> rest = without_empty_grammar(body);
  Fields fields(rest ? *rest : body);
  ApiRequest result;
  ReplyOptions reply;
  Request base = read_generation(fields, terms.limits(), result, reply);
  result.names.prompt = "input_prefix";
  const InfillTexts texts = read_texts(fields);
  settle_unknown(fields, terms.limits(), result.warnings);
  if (fields.fault()) return *fields.fault();
  auto tokens = infill_prompt(terms.engine(), texts, base.sampling, result.warnings);
  if (!tokens) return tokens.error();
  return finish_generation(terms, std::move(base), {std::move(*tokens)}, std::move(result), std::move(reply));
}

}  // namespace candor::serve::llama_cpp
