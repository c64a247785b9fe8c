// Any bytes as tokenizer.json, tokenizer_config.json and generation_config.json at once: refused in one line, or turned
// into metadata whose lists fit the vocabulary.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/json_text.h"
#include "formats/safetensors/tokenizer_json.h"
#include "fuzz/fuzz_budget.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  constexpr int64_t kVocab = 300;
  const auto json = candor::formats::parse_json({reinterpret_cast<const char*>(data), size}, "'fuzz'");
  if (!json) {
    CANDOR_CHECK(json.error().message.find('\n') == std::string::npos);
    return 0;
  }
  if (!json->is_object()) return 0;
  candor::formats::MetaList metadata;
  const auto read = candor::formats::safetensors::read_tokenizer(
      {.name = "'fuzz'", .tokenizer = &*json, .config = &*json, .generation = &*json}, kVocab, metadata);
  if (!read) {
    CANDOR_CHECK(read.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const auto* tokens = metadata.find("tokenizer.ggml.tokens");
  CANDOR_CHECK(tokens != nullptr);
  const auto& list = std::get<std::vector<std::string_view>>(std::get<candor::formats::MetaArray>(*tokens));
  CANDOR_CHECK(list.size() == static_cast<size_t>(kVocab));
  return 0;
}
