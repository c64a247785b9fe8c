// Prompts as llama.cpp's clients write them: texts and token ids, also mixed; texts with images.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"
#include "serve/core/message_parts.h"
#include "serve/core/request_terms.h"
#include "serve/llama_cpp/requests.h"

namespace candor::serve::llama_cpp {
namespace {

bool is_token_id(const Json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<TokenId>::max());
}

TextPrompt text_of(std::string text) {
  return {.text = std::move(text), .add_special = true, .parse_special = true};
}

// The beginning token stands before a text that comes first, and before no other.
Result<Prompt> join_parts(const Json& list, const Engine& engine) {
  TokenPrompt tokens;
  for (size_t i = 0; i < list.size(); ++i) {
    const Json& part = list[i];
    if (is_token_id(part)) {
      tokens.push_back(part.get<TokenId>());
    } else if (part.is_string()) {
      TextPrompt text = text_of(part.get<std::string>());
      text.add_special = i == 0;
      const auto more = engine.tokenize(text);
      if (!more) return more.error();
      tokens.insert(tokens.end(), more->begin(), more->end());
    } else {
      return fail(ErrorKind::kInvalidInput, fmt::format("prompt holds {}, expected texts and token ids", shown(part)),
                  "prompt");
    }
  }
  return Prompt(std::move(tokens));
}

// {"prompt_string": "... <__media__> ...", "multimodal_data": ["base64", ...]}.
Result<Prompt> read_media(const Json& value, ImageFiles& files) {
  Fields fields(value, "prompt");
  const auto text = fields.text("prompt_string");
  if (!text) fields.refuse("prompt_string", "prompt.prompt_string is missing, expected a string");
  const Json* data = fields.array("multimodal_data");
  if (fields.fault()) return fail(*fields.fault(), "prompt");
  TextPrompt prompt = text_of(*text);
  for (size_t i = 0; data != nullptr && i < data->size(); ++i) {
    auto file = files.of_listed((*data)[i]);
    if (!file) {
      return fail(file.error().kind, fmt::format("prompt.multimodal_data[{}] {}", i, file.error().message), "prompt");
    }
    prompt.images.push_back(std::move(*file));
  }
  return Prompt(std::move(prompt));
}

Result<Prompt> read_one(const Json& value, const RequestTerms& terms) {
  if (value.is_string()) return Prompt(text_of(value.get_ref<const std::string&>()));
  if (value.is_array()) return join_parts(value, terms.engine());
  ImageFiles files(terms.limits());
  if (value.is_object() && value.contains("prompt_string")) return read_media(value, files);
  return fail(ErrorKind::kInvalidInput,
              fmt::format("prompt is {}, expected a text, a list of texts and token ids, or an object with "
                          "prompt_string and multimodal_data",
                          shown(value)),
              "prompt");
}

// A list of prompts, or one prompt of parts? Ids make it one.
bool holds_prompts(const Json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::none_of(value, [](const Json& item) { return item.is_number(); });
}

}  // namespace

std::vector<Prompt> read_mixed_prompts(Fields& fields, const RequestTerms& terms) {
  std::vector<Prompt> prompts;
  const Json* value = fields.raw("prompt");
  if (value == nullptr) {
    fields.refuse("prompt", "prompt is missing, expected a text, token ids, or a list of either");
    return prompts;
  }
  const bool is_list = holds_prompts(*value);
  const size_t n = is_list ? value->size() : 1;
  if (n > kMaxPrompts)
    fields.refuse("prompt", fmt::format("prompt has {} elements, expected at most {}", n, kMaxPrompts));
  for (size_t i = 0; i < n && !fields.fault(); ++i) {
    auto prompt = read_one(is_list ? (*value)[i] : *value, terms);
    if (prompt) {
      prompts.push_back(std::move(*prompt));
    } else {
      fields.refuse_with(prompt.error());
    }
  }
  return prompts;
}

}  // namespace candor::serve::llama_cpp
