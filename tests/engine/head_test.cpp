// A head for multi-token prediction changes how many tokens a step gives, and nothing else, whatever it says; and one
// that is not this model's is refused before anything is computed.

#include <cmath>
#include <cstring>
#include <functional>

#include "engine_fixture.h"
#include "support/with_head.h"

namespace candor {
namespace {

using testing::complete;
using testing::sampled;

class HeadTest : public testing::TinyModelTest {
 protected:
  HeadTest() {
    options_ = testing::options_for(tiny_path(tiny_options()));
    options_.n_ctx = 160;
    options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};  // rows are free: drafts are made
    plain_ = testing::open_or_fail(options_);
    head_path_ = testing::write_head(options_.model_path, folder_.path() / "head.gguf");
  }
  std::unique_ptr<Engine> open_with_head() {
    options_.speculation = Speculation::kDraft;
    options_.draft_path = head_path_;
    return testing::open_or_fail(options_);
  }
  // Why a changed head is refused.
  std::string refusal(const std::function<void(testing::MemoryModelFile&)>& change) {
    const auto head = testing::make_head(options_.model_path);
    change(*head);
    EXPECT_TRUE(testing::write_model(*head, head_path_));
    options_.speculation = Speculation::kDraft;
    options_.draft_path = head_path_;
    const auto engine = Engine::open(options_);
    EXPECT_FALSE(engine);
    return engine ? "" : engine.error().message;
  }
  static std::vector<Request> requests() {
    std::vector<Request> requests;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      requests.push_back(sampled(testing::token_prompt(3 + 13 * static_cast<int32_t>(seed), 320, seed), 40, seed));
      requests.back().sampling.ignore_eos = true;
      if (seed % 2 == 0) requests.back().sampling.temperature = 0.0;
      if (seed == 1) requests.back().sampling.frequency_penalty = 0.5;
      if (seed == 3) requests.back().sampling.max_tokens.reset();  // until the context is full
      if (seed == 4) requests.back().constraint = {GrammarKind::kRegex, "[a-z ]{1,60}"};
      if (seed == 5) requests.back().on_context_full = OnContextFull::kCrop;
      if (seed == 5) requests.back().sampling.max_tokens = 200;
      if (seed == 6) requests.back().beams = BeamSearch{.width = 2};
    }
    return requests;
  }

  EngineOptions options_;
  std::filesystem::path head_path_;
  std::unique_ptr<Engine> plain_;
};

TEST_F(HeadTest, answers_are_those_of_plain_decoding) {
  const auto drafting = open_with_head();
  int64_t n_drafted = 0;
  for (int round = 0; round < 2; ++round) {  // in the second the prompts are in the cache, without vectors
    const auto asked = requests();
    for (size_t i = 0; i < asked.size(); ++i) {
      const Completion found = complete(*drafting, asked[i]);
      testing::expect_same(found, complete(*plain_, asked[i]), "request " + std::to_string(i));
      n_drafted += found.summary.usage.drafted_tokens;
    }
  }
  EXPECT_GT(n_drafted, 40);
}

TEST_F(HeadTest, many_at_once_get_their_own_answers) {
  options_.max_running = 3;  // the slots go from one to the next
  const auto drafting = open_with_head();
  const auto asked = requests();
  const auto together = testing::Crowd(*drafting).run(asked);
  for (size_t i = 0; i < asked.size(); ++i) {
    testing::expect_same(together[i], complete(*plain_, asked[i]), "request " + std::to_string(i));
  }
  EXPECT_EQ(drafting->stats().kv_blocks_used, 0);
}

TEST_F(HeadTest, the_shipped_head_is_mostly_right) {
  options_ = testing::options_for(testing::project_file("models/pocket/pocket-q8_0.gguf"));
  options_.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
  plain_ = testing::open_or_fail(options_);
  options_.speculation = Speculation::kAuto;  // "mtp-" and its name stands beside it
  const auto drafting = testing::open_or_fail(options_);
  EXPECT_EQ(drafting->info().draft_path.filename(), "mtp-pocket-q8_0.gguf");
  for (const double temperature : {0.0, 0.8}) {
    Request request;
    request.prompt = ChatPrompt{{{"user", "Tell me a story about a fox."}}};
    request.sampling.temperature = temperature;
    request.sampling.seed = 3;
    request.sampling.max_tokens = 120;
    const Completion found = complete(*drafting, request);
    testing::expect_same(found, complete(*plain_, request), "at " + std::to_string(temperature));
    const Usage& usage = found.summary.usage;
    EXPECT_GT(usage.drafted_tokens, 20) << temperature;
    EXPECT_GT(2 * usage.accepted_tokens, usage.completion_tokens) << temperature;
  }
}

TEST_F(HeadTest, a_head_in_the_models_own_file_is_found) {
  const auto model = formats::open_model_file(options_.model_path);
  ASSERT_TRUE(model);
  const auto both = testing::make_head(options_.model_path);
  for (const formats::MetaEntry& entry : (*model)->metadata()) both->set(entry.key, entry.value);
  for (const TensorView& tensor : (*model)->tensors()) {
    both->add_tensor(std::string(tensor.name), tensor.dtype, tensor.shape,
                     {tensor.bytes().begin(), tensor.bytes().end()});
  }
  const auto path = folder_.path() / "both.gguf";
  ASSERT_TRUE(testing::write_model(*both, path));
  options_.model_path = path;
  for (const Speculation speculation : {Speculation::kHead, Speculation::kAuto}) {
    options_.speculation = speculation;
    const auto drafting = testing::open_or_fail(options_);
    EXPECT_GT(drafting->info().draft_parameters, 0);
    testing::expect_same(complete(*drafting, requests()[2]), complete(*plain_, requests()[2]), "own head");
  }
  options_.speculation = Speculation::kOff;
  EXPECT_EQ(testing::open_or_fail(options_)->info().draft_parameters, 0);
}

TEST_F(HeadTest, without_a_head_nothing_is_drafted_unless_one_was_asked_for) {
  options_.speculation = Speculation::kAuto;
  EXPECT_EQ(testing::open_or_fail(options_)->info().draft_parameters, 0);
  options_.speculation = Speculation::kHead;
  const auto engine = Engine::open(options_);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("no head for multi-token prediction"), std::string::npos)
      << engine.error().message;
}

TEST_F(HeadTest, the_memory_plan_counts_it) {
  const auto plain = Engine::plan(options_);
  options_.speculation = Speculation::kDraft;
  options_.draft_path = head_path_;
  const auto planned = Engine::plan(options_);
  ASSERT_TRUE(plain && planned);
  EXPECT_GT(planned->draft_bytes, 0u);
  EXPECT_GE(planned->total_bytes(), plain->total_bytes() + planned->draft_bytes);
}

TEST_F(HeadTest, heads_that_are_not_this_models_are_refused) {
  const auto expect = [&](const char* words, const std::function<void(testing::MemoryModelFile&)>& change) {
    const std::string message = refusal(change);
    EXPECT_NE(message.find(words), std::string::npos) << words << " is not in: " << message;
  };
  const auto zeros = [](size_t n) { return std::vector<std::byte>(n); };
  expect("a head for multi-token prediction of a qwen2 model, but the model is of family llama",
         [](testing::MemoryModelFile& head) { head.set("general.architecture", std::string_view("qwen2")); });
  expect("tensor \"blk.2.nextn.eh_proj.weight\": shape [64, 96]; expected [64, 128]",
         [&](testing::MemoryModelFile& head) {
           head.remove_tensor("blk.2.nextn.eh_proj.weight");
           head.add_tensor("blk.2.nextn.eh_proj.weight", DType::kF32, {2, {64, 96}}, zeros(4 * 64 * 96));
         });
  expect("tensor \"blk.2.nextn.hnorm.weight\" is missing",
         [](testing::MemoryModelFile& head) { head.remove_tensor("blk.2.nextn.hnorm.weight"); });
  expect("tensor \"blk.2.attn_k.weight\" is missing",
         [](testing::MemoryModelFile& head) { head.remove_tensor("blk.2.attn_k.weight"); });
  expect("tensor 'blk.2.nextn.gate.weight' [64] has no place in a head", [&](testing::MemoryModelFile& head) {
    head.add_tensor("blk.2.nextn.gate.weight", DType::kF32, {1, {64}}, zeros(4 * 64));
  });
  expect("tensor \"blk.2.nextn.enorm.weight\" (F32): a value in row 0 is NaN or infinite",
         [&](testing::MemoryModelFile& head) {
           std::vector<std::byte> bytes(4 * 64);
           const float odd = std::nanf("");
           std::memcpy(bytes.data(), &odd, sizeof odd);
           head.remove_tensor("blk.2.nextn.enorm.weight");
           head.add_tensor("blk.2.nextn.enorm.weight", DType::kF32, {1, {64}}, bytes);
         });
  expect("no head of this model; name the one that was made for it: ",
         [](testing::MemoryModelFile& head) { head.remove_tensor("blk.2.attn_k.weight"); });
  expect("a vocabulary of 3 tokens", [](testing::MemoryModelFile& head) {
    head.set("tokenizer.ggml.model", std::string_view("llama"));
    head.set_strings("tokenizer.ggml.tokens", {"<unk>", "<s>", "</s>"});
    head.set_floats("tokenizer.ggml.scores", {0, 0, 0});
    head.set_ints("tokenizer.ggml.token_type", {2, 3, 3});
    head.set("tokenizer.ggml.unknown_token_id", uint64_t{0});
  });
}

// Of which the head guesses the first tokens alone, and the model says others too.
TEST_F(HeadTest, a_large_vocabulary_is_drafted_from_its_beginning) {
  testing::TinyModelOptions large = tiny_options();
  large.vocab = 33'000;
  options_.model_path = tiny_path(large);
  plain_ = testing::open_or_fail(options_);
  head_path_ = testing::write_head(options_.model_path, folder_.path() / "large.gguf");
  const auto drafting = open_with_head();
  int64_t n_drafted = 0;
  for (const size_t i : {size_t{0}, size_t{1}, size_t{4}}) {
    Request request = requests()[i];
    if (i == 0) request.sampling.logit_bias = {{.token = 32'900, .bias = 30.0}};
    const Completion found = complete(*drafting, request);
    testing::expect_same(found, complete(*plain_, request), "request " + std::to_string(i));
    n_drafted += found.summary.usage.drafted_tokens;
  }
  EXPECT_GT(n_drafted, 10);
}

TEST_F(HeadTest, a_head_alone_is_no_model) {
  options_.model_path = head_path_;
  const auto engine = Engine::open(options_);
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("a head for multi-token prediction"), std::string::npos)
      << engine.error().message;
}

}  // namespace
}  // namespace candor
