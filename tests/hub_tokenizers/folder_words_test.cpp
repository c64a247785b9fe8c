// Folders with a vocabulary other than tokenizer.json, against the programs that those are of (make_folder_cases.py).
// CANDOR_FOLDER_CASES names another folder of folders.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "formats/json_text.h"
#include "model/hub/hub_words.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "text/detokenizer.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

fs::path folders() {
  const char* other = std::getenv("CANDOR_FOLDER_CASES");
  return other != nullptr ? fs::path(other) : project_file("tests/hub_tokenizers/folders");
}

std::vector<std::string> kinds() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folders(), error)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// A vocabulary as a model file has it.
struct Words {
  formats::MetaList metadata;
  MemoryModelFile file;
  std::unique_ptr<text::Tokenizer> tokenizer;
};

Result<void> read(const fs::path& folder, int64_t n_vocab, Words& words) {
  CANDOR_TRY(model::read_words(folder, n_vocab, words.metadata));
  for (const formats::MetaEntry& entry : words.metadata.entries()) words.file.set(entry.key, entry.value);
  CANDOR_ASSIGN(words.tokenizer, text::Tokenizer::from_model_file(words.file));
  return {};
}

class FolderWords : public ::testing::TestWithParam<std::string> {};

TEST_P(FolderWords, gives_the_ids_and_the_text_of_the_reference) {
  const fs::path folder = folders() / GetParam();
  const auto cases = formats::read_json_file(folder / "cases.json", size_t{1} << 30);
  ASSERT_TRUE(cases) << cases.error().message;
  Words words;
  const auto done = read(folder, (*cases)["n_vocab"].get<int64_t>(), words);
  ASSERT_TRUE(done) << done.error().message;
  const bool whole = cases->value("whole", false);  // with the tokens before and behind, and those that texts name
  size_t n_different = 0;
  size_t n_other_texts = 0;
  for (const json& one : (*cases)["cases"]) {
    const std::string text = one[0];
    const auto ids = words.tokenizer->encode(text, {.add_special = whole, .parse_special = whole});
    ASSERT_TRUE(ids) << ids.error().message;
    if (*ids != one[1].get<std::vector<TokenId>>() && ++n_different <= 3) {
      EXPECT_EQ(json(*ids), one[1]) << json(text).dump(-1, ' ', true);
    }
    std::vector<TokenId> known = one[1];
    const bool has_unknown =
        !whole &&
        std::ranges::any_of(known, [&](TokenId id) { return words.tokenizer->kind(id) == text::TokenKind::kUnknown; });
    if (has_unknown) continue;  // its surface there, a mark that text was lost here
    const std::string ours = to_valid_utf8(text::detokenize(*words.tokenizer, known, true));
    if (ours == one[2] || ++n_other_texts > 3) continue;
    EXPECT_EQ(json(ours).dump(-1, ' ', true), one[2].dump(-1, ' ', true));
  }
  EXPECT_EQ(n_different, 0u) << "of " << (*cases)["cases"].size();
  EXPECT_EQ(n_other_texts, 0u) << "of " << (*cases)["cases"].size();
}

INSTANTIATE_TEST_SUITE_P(kinds, FolderWords, ::testing::ValuesIn(kinds()),
                         [](const auto& kind) { return kind.param; });

// A folder of the test's own.
class BadFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("candor_folder_words_" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::string refusal() {
    Words words;
    const auto done = read(folder_, 300, words);
    if (done) return "";
    EXPECT_EQ(done.error().message.find('\n'), std::string::npos);
    return done.error().message;
  }

  fs::path folder_;
};

TEST_F(BadFolder, names_the_file_and_what_is_wrong) {
  write("tokenizer.model", "\n\x05" "abc");
  EXPECT_NE(refusal().find("a field is cut off"), std::string::npos) << refusal();
  write("tokenizer.model", "AA== x\n");
  EXPECT_NE(refusal().find("line 1 is no base64 and a rank"), std::string::npos) << refusal();
  write("tokenizer.model", "AA== 0\n");
  EXPECT_NE(refusal().find("tokenizer_class"), std::string::npos) << refusal();
  write("tekken.json", "{\"config\": {\"pattern\": \"a\"}}");
  EXPECT_NE(refusal().find("default_vocab_size"), std::string::npos) << refusal();
}

TEST_F(BadFolder, wants_the_class_of_merges) {
  write("vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}");
  write("merges.txt", "#version: 0.2\na b\n");
  EXPECT_NE(refusal().find("tokenizer_class"), std::string::npos) << refusal();
  write("tokenizer_config.json", "{\"tokenizer_class\": \"GPT2Tokenizer\"}");
  EXPECT_EQ(refusal(), "");
  write("merges.txt", "a b\na c\n");
  EXPECT_NE(refusal().find("merge 1"), std::string::npos) << refusal();
}

// The newest form of a chat template is the one that counts.
TEST_F(BadFolder, takes_the_template_of_the_processor_before_the_tokenizers) {
  const auto seen = [&]() -> std::string {
    Words words;
    const auto done = read(folder_, 300, words);
    if (!done) return done.error().message;
    const auto* text = std::get_if<std::string_view>(words.metadata.find("tokenizer.chat_template"));
    return text == nullptr ? "" : std::string(*text);
  };
  write("vocab.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}");
  write("merges.txt", "#version: 0.2\na b\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer", "chat_template": "one"})");
  EXPECT_EQ(seen(), "one");
  write("chat_template.json", R"({"chat_template": "two"})");
  EXPECT_EQ(seen(), "two");
  write("chat_template.jinja", "three");
  EXPECT_EQ(seen(), "three");
  fs::remove(folder_ / "chat_template.jinja");
  write("chat_template.json", R"({"chat_template": 3})");
  EXPECT_NE(refusal().find("chat_template.json"), std::string::npos) << refusal();
}

TEST_F(BadFolder, names_a_setting_that_cannot_be_obeyed) {
  const std::string bytes = R"({"type": "ByteLevel", "add_prefix_space": false})";
  write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}, "pre_tokenizer": )" +
                              bytes + R"(, "decoder": )" + bytes + "}");
  write("tokenizer_config.json", R"({"split_special_tokens": true})");
  EXPECT_NE(refusal().find("split_special_tokens"), std::string::npos) << refusal();
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"1": {"content": "<x>"}}})");
  EXPECT_NE(refusal().find("gives '<x>' the id 1"), std::string::npos) << refusal();
  write("tokenizer_config.json", R"({"added_tokens_decoder": {"3": {"content": "<x>"}, "999": {"content": "<y>"}}})");
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace candor::testing
