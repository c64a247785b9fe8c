// Any bytes as a JSON schema: every text that its constraint lets end is one JSON value, in which no object has a name
// twice.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/constraint_walk.h"

namespace {

using nlohmann::json;

// A JSON number may be larger than any double; the parser here wants one that is not.
std::string without_exponents(std::string_view text) {
  std::string kept;
  bool is_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') is_string = !is_string;
    const bool is_exponent = !is_string && (c == 'e' || c == 'E') && i > 0 && text[i - 1] >= '0' && text[i - 1] <= '9';
    if (is_exponent) {
      i = std::min(text.find_first_not_of("+-0123456789", i + 1), text.size()) - 1;
      continue;
    }
    kept += c;
    if (is_string && c == '\\' && i + 1 < text.size()) kept += text[++i];
  }
  return kept;
}

void expect_value(std::string_view text) {
  std::vector<std::set<std::string>> open;
  bool is_value = true;
  const auto on_event = [&open, &is_value](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    const bool is_twice = event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second;
    is_value = is_value && !is_twice;
    return true;
  };
  is_value = !json::parse(without_exponents(text), on_event, false).is_discarded() && is_value;
  if (is_value) return;
  std::fprintf(stderr, "fuzz: the schema lets this end: \"%.*s\"\n", static_cast<int>(text.size()), text.data());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  candor::testing::constraint_walk().run(candor::GrammarKind::kJsonSchema, {reinterpret_cast<const char*>(data), size},
                                         expect_value);
  return 0;
}
