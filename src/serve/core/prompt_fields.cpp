// Prompts as texts and token ids, one or many.

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "candor/request.h"
#include "serve/core/api_request.h"
#include "serve/core/fields.h"
#include "serve/core/json_body.h"

namespace candor::serve {
namespace {

bool is_token_id(const Json& value) {
  return value.is_number_unsigned() &&
         value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<TokenId>::max());
}

// One element of the list, or the prompt itself; the reason in `fault` where it is none.
std::optional<Prompt> read_one(const Json& value, std::string& fault) {
  if (value.is_string()) return TextPrompt{.text = value.get<std::string>()};
  if (!value.is_array()) {
    fault = fmt::format("{}, expected a string or token ids", shown(value));
    return std::nullopt;
  }
  TokenPrompt tokens;
  for (const Json& item : value) {
    if (!is_token_id(item)) {
      fault = fmt::format("{}, expected a token id", shown(item));
      return std::nullopt;
    }
    tokens.push_back(item.get<TokenId>());
  }
  return tokens;
}

}  // namespace

std::vector<Prompt> read_prompts(Fields& fields, const char* name, size_t at_most) {
  const Json* value = fields.raw(name);
  std::vector<Prompt> prompts;
  if (value == nullptr) {
    fields.refuse(name, fmt::format("{} is missing, expected a string, token ids, or a list of either", name));
    return prompts;
  }
  const bool is_list = value->is_array() && !value->empty() && !value->front().is_number();
  const size_t n = is_list ? value->size() : 1;
  if (n > at_most) {
    fields.refuse(name, fmt::format("{} has {} elements, expected at most {}", name, n, at_most));
    return prompts;
  }
  for (size_t i = 0; i < n; ++i) {
    std::string fault;
    auto prompt = read_one(is_list ? (*value)[i] : *value, fault);
    if (!prompt) {
      fields.refuse(name, fmt::format("{} holds {}", name, fault));
      return prompts;
    }
    prompts.push_back(std::move(*prompt));
  }
  return prompts;
}

}  // namespace candor::serve
