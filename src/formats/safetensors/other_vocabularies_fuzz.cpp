// Any bytes as a vocabulary that is no tokenizer.json: refused in one line, or turned into metadata. First byte: tiktoken's
// ranks, tekken.json, or vocab.json and merges.txt with a zero byte between; second byte: the tokenizer's class.

#include <algorithm>
#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "formats/json_text.h"
#include "formats/safetensors/other_vocabularies.h"
#include "formats/safetensors/tokenizer_json.h"
#include "fuzz/fuzz_budget.h"

namespace {

using candor::Result;
using nlohmann::json;

constexpr std::array<const char*, 6> kClasses = {"QWenTokenizer", "TikTokenTokenizer", "TokenizersBackend",
                                                 "Other",         "GPT2Tokenizer",     "Qwen2Tokenizer"};

Result<json> read(uint8_t kind, std::string_view text, const json& config) {
  namespace st = candor::formats::safetensors;
  const st::VocabularyNotes notes{
      .name = "'fuzz'", .config = &config, .added = nullptr, .special = &config, .is_gpt2_family = false};
  if (kind % 3 == 0) return st::tokenizer_of_tiktoken(text, notes);
  const size_t end = kind % 3 == 1 ? text.size() : std::min(text.find('\0'), text.size());
  CANDOR_ASSIGN(const json value, candor::formats::parse_json(text.substr(0, end), "'fuzz'"));
  if (!value.is_object()) return json::object();
  if (kind % 3 == 1) return st::tokenizer_of_tekken(value, "'fuzz'");
  return st::tokenizer_of_merges(value, text.substr(std::min(end + 1, text.size())), notes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const candor::testing::FuzzBudget budget(size);
  const json config = {{"tokenizer_class", kClasses[data[1] % kClasses.size()]}, {"eos_token", "<|endoftext|>"}};
  const auto tokenizer = read(data[0], {reinterpret_cast<const char*>(data) + 2, size - 2}, config);
  candor::formats::MetaList metadata;
  const auto done = !tokenizer ? Result<void>(tokenizer.error())
                               : candor::formats::safetensors::read_tokenizer(
                                     {.name = "'fuzz'", .tokenizer = &*tokenizer, .config = &config, .ranks_are_ids = true},
                                     300, metadata);
  CANDOR_CHECK(done || done.error().message.find('\n') == std::string::npos);
  return 0;
}
