// Weights of words: SPLADE as sentence-transformers computes it, BGE M3's lexical weights and vectors of tokens as its
// makers do; the same bits in batches, by every kernel table, over ranks, and from GGUF.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <future>

#include "encoders/golden.h"
#include "engine/engine_impl.h"
#include "kernels/kernels.h"
#include "model/hub/hub_folder.h"
#include "support/temp_folder.h"
#include "support/thread_ranks.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace sparse_words {

constexpr const char* kSparse[] = {"bert_splade", "distilbert_splade", "roberta_splade", "modernbert_splade", "bge_m3"};

using Words = std::vector<WordWeight>;

std::vector<Words> read_together(Engine& engine, const std::vector<std::string>& texts) {
  std::vector<std::promise<Words>> promises(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto id =
        engine.submit(reading(TextPrompt{.text = texts[i]}, Pooling::kSparse), [&, i](const TokenEvent& event) {
          if (event.error) ADD_FAILURE() << event.error->message;
          if (event.summary) promises[i].set_value(event.sparse);
        });
    if (id) continue;
    ADD_FAILURE() << id.error().message;
    promises[i].set_value({});
  }
  std::vector<Words> result;
  for (auto& promise : promises) result.push_back(promise.get_future().get());
  return result;
}

// Words that only one side has weigh 0 on the other.
double worst_difference(const Words& words, const nlohmann::json& expected) {
  std::map<TokenId, double> left;
  for (const auto& entry : expected) left[entry[0]] = entry[1];
  for (const WordWeight& word : words) left[word.token] -= static_cast<double>(word.weight);
  double worst = 0.0;
  for (const auto& [token, difference] : left) worst = std::max(worst, std::abs(difference));
  return worst;
}

TEST(sparse, words_weigh_what_the_libraries_say) {
  for (const char* name : kSparse) {
    const Expected expected(name);
    for (const auto& [backend, difference] : {std::pair("reference", 2e-5), std::pair("cpu", 0.3)}) {
      SCOPED_TRACE(std::string(name) + " on " + backend);
      const auto engine = open_encoder(encoder_path(name), backend);
      ASSERT_NE(engine, nullptr);
      EXPECT_TRUE(engine->info().reading.weighs_words);
      EXPECT_FALSE(engine->info().reading.writes);
      const auto tokens = engine->tokenize(TextPrompt{.text = expected.text(0)});
      ASSERT_TRUE(tokens);
      EXPECT_EQ(*tokens, expected.json["tokens"].get<std::vector<TokenId>>());
      const std::vector<Words> read = read_together(*engine, {expected.text(0), expected.text(1)});
      for (size_t i = 0; i < 2; ++i) {
        EXPECT_TRUE(std::ranges::is_sorted(read[i], {}, &WordWeight::token));
        EXPECT_LT(worst_difference(read[i], expected.json["sparse"][i]), difference);
      }
    }
  }
}

TEST(sparse, tokens_of_bge_m3_have_vectors_beside_the_texts) {
  const Expected expected("bge_m3");
  const auto engine = open_encoder(encoder_path("bge_m3"), "reference");
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->info().reading.token_dim, 16);
  EXPECT_EQ(engine->info().reading.dim, 32);
  for (size_t i = 0; i < 2; ++i) {
    const std::vector<float> rows =
        read_text(*engine, reading(TextPrompt{.text = expected.text(i)}, Pooling::kNone, PromptRows::kVectors));
    const auto wanted = expected.json["token_vectors"][i].get<std::vector<float>>();
    ASSERT_EQ(rows.size(), wanted.size());
    for (size_t k = 0; k < rows.size(); ++k) EXPECT_NEAR(rows[k], wanted[k], 2e-6);
  }
}

std::vector<std::string> made_texts() {
  std::vector<std::string> texts;
  for (int i = 0; i < 64; ++i) {
    std::string text = "the engine";
    for (int k = 0; k < i % 9; ++k) text += k % 2 == 0 ? " reads words" : " of a step";
    texts.push_back(text + std::to_string(i));
  }
  return texts;
}

TEST(sparse, the_same_alone_together_by_every_table_and_over_ranks) {
  const std::vector<std::string> texts = made_texts();
  for (const char* name : kSparse) {
    SCOPED_TRACE(name);
    std::vector<Words> alone;
    {
      const auto engine = open_encoder(encoder_path(name));
      ASSERT_NE(engine, nullptr);
      for (const std::string& text : texts) alone.push_back(read_together(*engine, {text}).front());
      EXPECT_EQ(read_together(*engine, texts), alone);
    }
    for (const kernels::KernelTable* table : kernels::runnable_tables()) {
      setenv("CANDOR_ISA", std::string(table->name).c_str(), 1);
      const auto engine = open_encoder(encoder_path(name), "cpu", 3);
      unsetenv("CANDOR_ISA");
      ASSERT_NE(engine, nullptr);
      EXPECT_EQ(read_together(*engine, texts), alone) << table->name;
    }
    EngineOptions options;
    options.model_path = encoder_path(name);
    options.n_threads = 1;
    const auto ranks = engine::open_with_backend(options, thread_ranks(2));
    ASSERT_TRUE(ranks) << ranks.error().message;
    EXPECT_EQ(read_together(**ranks, texts), alone);
  }
}

TEST(sparse, a_folder_and_its_gguf_have_the_same_bits) {
  const TempFolder folder;
  for (const char* name : kSparse) {
    SCOPED_TRACE(name);
    const auto file = model::open_model(encoder_path(name));
    ASSERT_TRUE(file) << file.error().message;
    for (const TensorView& tensor : (*file)->tensors()) ASSERT_TRUE((*file)->make_copy(tensor.bytes()));
    const auto path = folder.path() / (std::string(name) + ".gguf");
    ASSERT_TRUE(write_model(**file, path));
    const auto original = open_encoder(encoder_path(name));
    const auto converted = open_encoder(path);
    ASSERT_TRUE(original && converted);
    const std::vector<std::string> texts = {Expected(name).text(0)};
    EXPECT_EQ(read_together(*original, texts), read_together(*converted, texts));
  }
}

TEST(sparse, a_model_without_it_and_a_folder_that_lacks_a_part_say_so) {
  const auto engine = open_encoder(encoder_path("bert"));
  ASSERT_NE(engine, nullptr);
  const auto refused = engine->generate(reading(TextPrompt{.text = "a"}, Pooling::kSparse));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "pooling");
  const TempFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& file, const std::string& text) {
    const auto path = folder.path() / "model";
    std::filesystem::remove_all(path);
    std::filesystem::copy(encoder_path(name), path, std::filesystem::copy_options::recursive);
    std::ofstream(path / file, std::ios::binary) << text;
    EngineOptions options;
    options.model_path = path;
    const auto opened = Engine::open(options);
    return opened ? std::string("opened") : opened.error().message;
  };
  EXPECT_NE(refusal("bert", "modules.json", R"([{"type": "a.SpladePooling", "path": "1_SpladePooling"}])")
                .find("an object that names it"),
            std::string::npos);
  EXPECT_NE(refusal("bert_splade", "1_SpladePooling/config.json", R"({"pooling_strategy": "mean"})").find("max or sum"),
            std::string::npos);
  EXPECT_NE(refusal("bge_m3", "sparse_linear.pt", "PK").find("torch.save"), std::string::npos);
  std::filesystem::remove_all(folder.path() / "headless");
  std::filesystem::copy(encoder_path("bert_splade"), folder.path() / "headless",
                        std::filesystem::copy_options::recursive);
  std::filesystem::copy_file(encoder_path("bert") / "model.safetensors", folder.path() / "headless/model.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  std::filesystem::copy_file(encoder_path("bert") / "config.json", folder.path() / "headless/config.json",
                             std::filesystem::copy_options::overwrite_existing);
  EngineOptions options;
  options.model_path = folder.path() / "headless";
  const auto opened = Engine::open(options);
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().message.find("mlm.weight"), std::string::npos) << opened.error().message;
}

}  // namespace sparse_words
}  // namespace candor::testing
