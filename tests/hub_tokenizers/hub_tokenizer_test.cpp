// tokenizer.json against the `tokenizers` library (make_tokenizer_cases.py). CANDOR_TOKENIZER_CASES names another
// folder of cases.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "formats/json_text.h"
#include "formats/safetensors/tokenizer_json.h"
#include "formats/safetensors/tokenizer_json_writer.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "text/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::testing {
namespace {

using nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 30;

std::filesystem::path cases_folder() {
  const char* other = std::getenv("CANDOR_TOKENIZER_CASES");
  return other != nullptr ? std::filesystem::path(other) : project_file("tests/hub_tokenizers/cases");
}

class HubTokenizer : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto tokenizer = formats::read_json_file(cases_folder() / (std::string(GetParam()) + ".json"), kMaxBytes);
    ASSERT_TRUE(tokenizer) << tokenizer.error().message;
    const auto cases = formats::read_json_file(cases_folder() / (std::string(GetParam()) + ".cases.json"), kMaxBytes);
    ASSERT_TRUE(cases) << cases.error().message;
    cases_ = *cases;
    int64_t n_vocab = static_cast<int64_t>((*tokenizer)["model"]["vocab"].size());
    for (const json& token : (*tokenizer)["added_tokens"]) n_vocab = std::max(n_vocab, token["id"].get<int64_t>() + 1);
    const auto read =
        formats::safetensors::read_tokenizer({.name = GetParam(), .tokenizer = &*tokenizer}, n_vocab, metadata_);
    ASSERT_TRUE(read) << read.error().message;
    for (const formats::MetaEntry& entry : metadata_.entries()) file_.set(entry.key, entry.value);
    auto made = text::Tokenizer::from_model_file(file_);
    ASSERT_TRUE(made) << made.error().message;
    tokenizer_ = std::move(*made);
  }

  formats::MetaList metadata_;
  MemoryModelFile file_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  json cases_;
};

TEST_P(HubTokenizer, gives_the_ids_of_the_library) {
  size_t n_different = 0;
  for (const json& one : cases_) {
    const std::string text = one[0];
    const std::vector<TokenId> expected = one[1];
    const auto encoded = tokenizer_->encode(text, {.parse_special = true});
    ASSERT_TRUE(encoded) << encoded.error().message;
    const std::vector<TokenId>& ours = *encoded;
    if (ours == expected) continue;
    if (++n_different > 3) continue;
    EXPECT_EQ(ours, expected) << json(text).dump(-1, ' ', true);
  }
  EXPECT_EQ(n_different, 0u) << "of " << cases_.size();
}

TEST_P(HubTokenizer, gives_the_text_of_the_library) {
  size_t n_different = 0;
  for (const json& one : cases_) {
    const std::vector<TokenId> ids = one[1];
    // Half characters, which a byte that became unknown leaves: one mark for each there, for each byte here.
    if (one[2].get_ref<const std::string&>().find("\uFFFD") != std::string::npos) continue;
    const std::string ours = to_valid_utf8(text::detokenize(*tokenizer_, ids, true));
    if (ours == one[2] || ++n_different > 3) continue;
    EXPECT_EQ(json(ours).dump(-1, ' ', true), one[2].dump(-1, ' ', true));
  }
  EXPECT_EQ(n_different, 0u) << "of " << cases_.size();
}

class PlainOrHoles : public HubTokenizer {};

TEST_P(PlainOrHoles, gives_the_same_ids_written_and_read_again) {
  const auto written = formats::safetensors::write_tokenizer(file_);
  ASSERT_TRUE(written) << written.error().message;
  const json again = json::parse(written->tokenizer.dump());
  formats::MetaList metadata;
  const auto read = formats::safetensors::read_tokenizer({.name = GetParam(), .tokenizer = &again},
                                                         tokenizer_->n_vocab(), metadata);
  ASSERT_TRUE(read) << read.error().message;
  MemoryModelFile file;
  for (const formats::MetaEntry& entry : metadata.entries()) file.set(entry.key, entry.value);
  const auto tokenizer = text::Tokenizer::from_model_file(file);
  ASSERT_TRUE(tokenizer) << tokenizer.error().message;
  for (const json& one : cases_) {
    const auto ids = (*tokenizer)->encode(one[0].get_ref<const std::string&>(), {.parse_special = true});
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, one[1].get<std::vector<TokenId>>()) << one[0].dump(-1, ' ', true);
  }
}

INSTANTIATE_TEST_SUITE_P(kinds, PlainOrHoles,
                         ::testing::Values("gpt2_holes", "digits_holes", "gpt2_unknown", "gpt2_fused", "llama2_plain",
                                           "unigram_plain",
                                           "gpt4o_removed", "gpt2_split", "gpt2_space", "cl100k", "falcon",
                                           "behaviors", "words"),
                         [](const auto& kind) { return std::string(kind.param); });

INSTANTIATE_TEST_SUITE_P(kinds, HubTokenizer,
                         ::testing::Values("gpt4o_removed", "gpt2_split", "gpt2_space", "cl100k", "kimi",
                                           "deepseek_llm", "falcon", "threes", "behaviors", "words", "insides", "gpt2",
                                           "digits", "llama3", "dbrx", "qwen2", "qwen35", "gpt4o", "tekken",
                                           "deepseek3", "bloom", "sentencepiece", "sentencepiece_no_prefix",
                                           "metaspace", "strips", "llama2", "gemma", "bytes_nfkd", "bytes_nfd",
                                           "bytes_nfkc", "unigram", "unigram_words", "unigram_first", "unigram_bytes",
                                           "gpt2_holes", "digits_holes", "gpt2_unknown", "gpt2_fused", "llama2_plain",
                                           "unigram_plain", "wordpiece", "wordpiece_cased", "wordpiece_plain"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace candor::testing
