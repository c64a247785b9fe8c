// Any bytes as a SentencePiece model: refused in one line, or turned into metadata whose lists fit the vocabulary.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/safetensors/sentencepiece_proto.h"
#include "formats/safetensors/tokenizer_json.h"
#include "fuzz/fuzz_budget.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const candor::testing::FuzzBudget budget(size);
  constexpr int64_t kVocab = 300;
  const auto file =
      candor::formats::safetensors::read_sentence_piece({reinterpret_cast<const char*>(data), size}, "'fuzz'");
  if (!file) {
    CANDOR_CHECK(file.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const nlohmann::json none = nlohmann::json::object();
  candor::formats::MetaList metadata;
  const auto read = candor::formats::safetensors::read_tokenizer(
      {.name = "'fuzz'", .tokenizer = &none, .config = &none, .generation = &none, .pieces = &*file}, kVocab, metadata);
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
