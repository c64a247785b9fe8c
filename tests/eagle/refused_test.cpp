// EAGLE-3 heads that are not this model's, or no heads: one line each, before anything is computed.

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>

#include "eagle_golden.h"
#include "engine_fixture.h"
#include "model/draft_head.h"
#include "model/model.h"
#include "support/with_head.h"

namespace candor {
namespace {

using nlohmann::json;
using testing::MemoryModelFile;

std::vector<std::byte> zeros(size_t n) {
  return std::vector<std::byte>(n);
}

std::vector<std::byte> ids(const std::vector<int64_t>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(int64_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

class EagleRefusedTest : public testing::TinyModelTest {
 protected:
  EagleRefusedTest() {
    options_ = testing::options_for(tiny_path(tiny_options()));
    options_.speculation = Speculation::kEagle;
  }
  std::string refusal_of(const std::filesystem::path& path, bool by_plan = true) {
    options_.draft_path = path;
    EXPECT_TRUE(!by_plan || !Engine::plan(options_)) << path;
    const auto engine = Engine::open(options_);
    EXPECT_FALSE(engine) << path;
    const std::string message = engine ? "" : engine.error().message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    return message;
  }
  // by_plan: weights need not be read.
  void expect(const char* words, const std::function<void(MemoryModelFile&)>& change, bool by_plan = true) {
    const auto head = testing::make_eagle(options_.model_path);
    change(*head);
    ASSERT_TRUE(testing::write_model(*head, folder_.path() / "head.gguf"));
    const std::string message = refusal_of(folder_.path() / "head.gguf", by_plan);
    EXPECT_NE(message.find(words), std::string::npos) << words << " is not in: " << message;
    EXPECT_TRUE(!by_plan || message.find("head.gguf") != std::string::npos) << message;
  }
  void replace(MemoryModelFile& head, const char* name, DType dtype, const Shape& shape, std::vector<std::byte> bytes) {
    head.remove_tensor(name);
    head.add_tensor(name, dtype, shape, std::move(bytes));
  }

  EngineOptions options_;
};

TEST_F(EagleRefusedTest, heads_of_other_models) {
  expect("made for a model of width 4096, but the model's is 64",
         [](MemoryModelFile& head) { head.set("eagle3.target_hidden_size", uint64_t{4096}); });
  expect("it reads the model in front of the blocks 2, 16, 29, expected 2 to 8 of them, ascending from 0 to 2",
         [](MemoryModelFile& head) {
           head.set_ints("eagle3.target_layers", {2, 16, 29});
         });
  expect("it reads the model in front of the blocks 2, 1, -1 (which nothing in it says)",
         [](MemoryModelFile& head) { head.erase("eagle3.target_layers"); });
  expect("tensor \"fc.weight\": shape [64, 128]; expected [64, 192]", [&](MemoryModelFile& head) {
    replace(head, "fc.weight", DType::kF32, {2, {64, 128}}, zeros(4 * 64 * 128));
  });
  expect("of width 32, but the model's is 64, and tensor \"token_embd.weight\" is missing",
         [](MemoryModelFile& head) { head.set("eagle3.embedding_length", uint64_t{32}); });
  expect("tensor \"token_embd.weight\" has 100 rows, and the model 320 tokens: a head of another vocabulary",
         [&](MemoryModelFile& head) {
           head.add_tensor("token_embd.weight", DType::kF32, {2, {100, 64}}, zeros(4 * 64 * 100));
         });
  const auto add_words = [](MemoryModelFile& head) {
    head.set("tokenizer.ggml.model", std::string_view("llama"));
    head.set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
    head.set_floats("tokenizer.ggml.scores", {0, 0, 0});
    head.set_ints("tokenizer.ggml.token_type", {2, 3, 3});
    head.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  };
  expect("a vocabulary of 3 tokens", add_words, false);
}

TEST_F(EagleRefusedTest, tables_of_tokens) {
  expect("it has logits of 160 tokens, and the model has 320, but tensor \"d2t\" is missing",
         [](MemoryModelFile& head) { head.remove_tensor("d2t"); });
  expect("tensor \"d2t\": I64 [3]; expected I64 [160]", [&](MemoryModelFile& head) {
    replace(head, "d2t", DType::kI64, {1, {3}}, ids({0, 1, 2}));
  });
  expect("tensor \"d2t\": I32 [160]; expected I64 [160]", [&](MemoryModelFile& head) {
    replace(head, "d2t", DType::kI32, {1, {160}}, zeros(4 * 160));
  });
  std::vector<int64_t> tokens(160);
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int64_t>(i);
  for (const int64_t odd : {int64_t{320}, int64_t{-1}, INT64_MIN}) {
    tokens[7] = odd;
    const std::string words = "tensor \"d2t\": element 7 stands for token " + std::to_string(odd) +
                              ", and the model has 320: a table of another vocabulary";
    expect(words.c_str(), [&](MemoryModelFile& head) { replace(head, "d2t", DType::kI64, {1, {160}}, ids(tokens)); });
  }
  tokens[7] = 6;
  expect("element 7 stands for token 6, which another one stands for", [&](MemoryModelFile& head) {
    replace(head, "d2t", DType::kI64, {1, {160}}, ids(tokens));
  });
}

TEST_F(EagleRefusedTest, damaged_heads) {
  for (const char* name : {"fc.weight", "output_norm.weight", "blk.0.attn_norm.weight", "blk.0.attn_norm_2.weight",
                           "blk.0.attn_q.weight", "blk.0.ffn_down.weight"}) {
    const std::string words = std::string("tensor \"") + name + "\" is missing";
    expect(words.c_str(), [&](MemoryModelFile& head) { head.remove_tensor(name); });
  }
  expect("tensor \"d2t\": I64 [160]; expected I64 [320]",
         [&](MemoryModelFile& head) {  // by the model's matrix, with a table of half
           head.remove_tensor("output.weight");
         });
  expect("tensor 'blk.0.attn_q_norm.weight' [32] has no place", [&](MemoryModelFile& head) {
    head.add_tensor("blk.0.attn_q_norm.weight", DType::kF32, {1, {32}}, zeros(4 * 32));
  });
  expect("tensor input_norm.weight is missing", [](MemoryModelFile& head) { head.set("eagle3.norm_before_fc", true); });
  expect("'eagle3.block_count': the value is 2, expected 1 to 1",
         [](MemoryModelFile& head) { head.set("eagle3.block_count", uint64_t{2}); });
  std::vector<std::byte> bytes(4 * 64 * 192);
  const float odd = std::nanf("");
  std::memcpy(bytes.data(), &odd, sizeof odd);
  const auto add_nan = [&](MemoryModelFile& head) { replace(head, "fc.weight", DType::kF32, {2, {64, 192}}, bytes); };
  expect("tensor \"fc.weight\" (F32): a value in row 0 is NaN or infinite", add_nan, false);
}

TEST_F(EagleRefusedTest, what_is_no_head) {
  EXPECT_NE(refusal_of(options_.model_path).find("no EAGLE-3 head, which \"eagle:\" in front of it asks for"),
            std::string::npos);
  EXPECT_NE(refusal_of(testing::write_head(options_.model_path, folder_.path() / "mtp.gguf")).find("no EAGLE-3 head"),
            std::string::npos);
  EXPECT_NE(refusal_of(folder_.path() / "nothing").find("nothing"), std::string::npos);
  std::filesystem::create_directory(folder_.path() / "empty");
  EXPECT_NE(refusal_of(folder_.path() / "empty").find("is a folder without config.json"), std::string::npos);
  options_.draft_path.clear();
  const auto unnamed = Engine::open(options_);
  ASSERT_FALSE(unnamed);
  EXPECT_NE(unnamed.error().message.find("needs draft_path (--draft)"), std::string::npos) << unnamed.error().message;
}

TEST_F(EagleRefusedTest, a_head_without_its_model) {
  const auto head = testing::write_eagle(options_.model_path, folder_.path() / "head.gguf");
  for (const std::filesystem::path& path : std::vector{head, testing::eagle_folder("specforge")}) {
    const auto engine = Engine::open(testing::options_for(path));
    ASSERT_FALSE(engine);
    EXPECT_NE(engine.error().message.find("this is an EAGLE-3 head and no model"), std::string::npos)
        << engine.error().message;
  }
}

// Folders, by their config.json and their tensors.
class EagleFolderTest : public ::testing::Test {
 protected:
  // Why the golden's head with a changed config.json is refused.
  std::string refusal(const std::function<void(json&)>& change, const char* name = "specforge") {
    const std::filesystem::path head = folder_.path() / "head";
    std::filesystem::remove_all(head);
    std::filesystem::copy(testing::eagle_folder(name), head);
    std::ifstream in(head / "config.json");
    json config = json::parse(in);
    change(config);
    std::ofstream(head / "config.json") << config;
    EngineOptions options = testing::options_for(testing::eagle_target());
    options.speculation = Speculation::kEagle;
    options.draft_path = head;
    const auto planned = Engine::plan(options);
    return planned ? "" : planned.error().message;
  }

  testing::TempFolder folder_;
};

TEST_F(EagleFolderTest, settings_that_are_not_computed_are_refused) {
  const auto expect = [&](const char* words, const std::function<void(json&)>& change) {
    const std::string message = refusal(change);
    EXPECT_NE(message.find(words), std::string::npos) << words << " is not in: " << message;
  };
  expect("\"fc_norm\" is 'true', which is not supported", [](json& config) { config["fc_norm"] = true; });
  expect("\"use_aux_hidden_state\" is 'false'",
         [](json& config) { config["eagle_config"]["use_aux_hidden_state"] = false; });
  expect("\"hidden_act\" is", [](json& config) { config["hidden_act"] = "gelu"; });
  expect("\"norm_before_residual\" is '3', expected true or false",
         [](json& config) { config["norm_before_residual"] = 3; });
  expect("\"eagle_aux_hidden_state_layer_ids\" is",
         [](json& config) { config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = "first"; });
  expect("expected 2 to 8 of them, ascending from 0 to 2", [](json& config) {
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = {1, 2, 3};
  });
  expect("made for a model of width 128", [](json& config) { config["target_hidden_size"] = 128; });
  expect("\"norm_before_fc\" is true, but tensor input_norm.weight is missing",
         [](json& config) { config["norm_before_fc"] = true; });
}

TEST_F(EagleFolderTest, the_forms_in_which_heads_are_published_are_known) {
  EXPECT_EQ(refusal([](json&) {}), "");
  EXPECT_EQ(refusal([](json& config) { config["architectures"] = {"LlamaForCausalLM"}; }), "");  // SafeAILab's own
  EXPECT_EQ(refusal([](json& config) { config.erase("draft_vocab_size"); }), "");
  EXPECT_EQ(refusal([](json& config) {  // beside the other keys: blocks whose inputs count
              config.erase("eagle_config");
              config["eagle_aux_hidden_state_layer_ids"] = {0, 1, 2};
            }),
            "");
  EXPECT_EQ(refusal([](json&) {}, "speculators"), "");
  EXPECT_EQ(refusal([](json& config) { config["architectures"] = {"Eagle3Speculator"}; }, "speculators"), "");
}

// Where nothing says it, in front of the third block, the middle one, and the third from behind.
TEST_F(EagleFolderTest, a_head_that_names_no_blocks_reads_the_usual_ones) {
  testing::TinyModelOptions deep;
  deep.n_layers = 8;
  const auto path = folder_.path() / "deep.gguf";
  ASSERT_TRUE(testing::write_model(*testing::make_tiny_model(deep), path));
  const auto head = testing::make_eagle(path);
  head->erase("eagle3.target_layers");
  const auto model = model::read_arch(*testing::open_file(path));
  ASSERT_TRUE(model);
  const auto spec = model::head_arch(*head, *model);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->embed.vector_layers, (std::vector<int32_t>{2, 4, 5}));
}

}  // namespace
}  // namespace candor
