// Each family of encoders against the `transformers` library: tokens, hidden states, vectors and what heads say; and a
// folder against its GGUF.

#include <algorithm>
#include <cmath>

#include "encoders/golden.h"
#include "model/hub/hub_folder.h"
#include "support/temp_folder.h"
#include "support/tiny_model.h"

namespace candor::testing {
namespace {

// 1 - cosine, of rows of `width` the worst.
double worst_distance(const std::vector<float>& a, const std::vector<float>& b, size_t width) {
  EXPECT_EQ(a.size(), b.size());
  if (a.size() != b.size() || a.empty()) return 1.0;
  double worst = 0.0;
  for (size_t row = 0; row < a.size(); row += width) {
    double dot = 0.0, square_a = 0.0, square_b = 0.0;
    for (size_t i = row; i < row + width; ++i) {
      const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
      dot += x * y;
      square_a += x * x;
      square_b += y * y;
    }
    worst = std::max(worst, 1.0 - dot / std::sqrt(square_a * square_b));
  }
  return worst;
}

double worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double worst = 0.0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return worst;
}

struct Tolerance {
  double distance;
  double difference;
};
constexpr Tolerance kReference = {1e-6, 2e-5};
constexpr Tolerance kCpu = {3e-3, 0.12};  // of inputs in bf16

void expect_golden(const std::string& name, const std::filesystem::path& path, const std::string& backend,
                   Tolerance tolerance) {
  SCOPED_TRACE(path.string() + " on " + backend);
  const Expected expected(name);
  const auto engine = open_encoder(path, backend);
  ASSERT_NE(engine, nullptr);
  const auto tokens = engine->tokenize(TextPrompt{.text = expected.text(0)});
  ASSERT_TRUE(tokens) << tokens.error().message;
  EXPECT_EQ(*tokens, expected.json["tokens"].get<std::vector<TokenId>>());
  const TextPrompt first{.text = expected.text(0)};
  const size_t width = expected.json["dim"];
  EXPECT_LT(worst_distance(read_text(*engine, reading(first, Pooling::kNone, PromptRows::kHidden)),
                           expected.floats("hidden"), width),
            tolerance.distance);
  if (expected.has("pair_labels")) {
    const Request pair = reading(PairPrompt{expected.text(0), expected.text(1)}, Pooling::kLabels);
    EXPECT_LT(worst_difference(read_text(*engine, pair), expected.floats("pair_labels")), tolerance.difference);
  }
  if (expected.has("token_labels")) {
    const Request rows = reading(first, Pooling::kNone, PromptRows::kLabels);
    EXPECT_LT(worst_difference(read_text(*engine, rows), expected.floats("token_labels")), tolerance.difference);
  }
  for (size_t i = 0; expected.has("vectors") && i < 2; ++i) {
    const auto wanted = expected.json["vectors"][i].get<std::vector<float>>();
    const std::vector<float> vector =
        read_text(*engine, reading(TextPrompt{.text = expected.text(i)}, Pooling::kModel));
    EXPECT_LT(worst_distance(vector, wanted, wanted.size()), tolerance.distance);
    EXPECT_LT(worst_difference(vector, wanted), tolerance.difference);
    EXPECT_EQ(engine->info().reading.dim, static_cast<int32_t>(wanted.size()));
  }
}

TEST(encoders, are_as_the_library_computes_them) {
  for (const char* name : kEncoders) {
    expect_golden(name, encoder_path(name), "reference", kReference);
    expect_golden(name, encoder_path(name), "cpu", kCpu);
  }
}

TEST(encoders, tokens_have_vectors_where_no_pooling_stands_before_the_layers) {
  const Expected expected("bert_late");
  for (const auto& [backend, distance] : {std::pair("reference", 1e-6), std::pair("cpu", 1e-3)}) {
    const auto engine = open_encoder(encoder_path("bert_late"), backend);
    ASSERT_NE(engine, nullptr);
    EXPECT_EQ(engine->info().reading.dim, 12);
    for (size_t i = 0; i < 2; ++i) {
      const Request request = reading(TextPrompt{.text = expected.text(i)}, Pooling::kNone, PromptRows::kVectors);
      EXPECT_LT(worst_distance(read_text(*engine, request), expected.json["vectors"][i].get<std::vector<float>>(), 12),
                distance);
    }
  }
}

TEST(encoders, pairs_have_the_librarys_tokens) {
  for (const char* name : kEncoders) {
    SCOPED_TRACE(name);
    const Expected expected(name);
    const auto engine = open_encoder(encoder_path(name));
    ASSERT_NE(engine, nullptr);
    const auto pair = engine->tokenize(PairPrompt{expected.text(0), expected.text(1)});
    ASSERT_TRUE(pair) << pair.error().message;
    EXPECT_EQ(*pair, expected.json["pair"].get<std::vector<TokenId>>());
  }
}

TEST(encoders, gguf_files_of_another_converter_agree) {
  for (const char* name : {"bert", "distilbert", "modernbert", "gemma_embedding", "jina_v2"}) {
    SCOPED_TRACE(name);
    const Expected expected(name);
    const auto engine = open_encoder(encoder_path(name) / "model.gguf", "reference");
    ASSERT_NE(engine, nullptr);
    const TokenPrompt tokens = expected.json["tokens"].get<TokenPrompt>();
    EXPECT_LT(worst_distance(read_text(*engine, reading(tokens, Pooling::kNone, PromptRows::kHidden)),
                             expected.floats("hidden"), expected.json["dim"]),
              kReference.distance);
  }
}

TEST(encoders, a_folder_and_its_gguf_have_the_same_bits) {
  const TempFolder folder;
  for (const char* name : kEncoders) {
    SCOPED_TRACE(name);
    const Expected expected(name);
    const auto file = model::open_model(encoder_path(name));
    ASSERT_TRUE(file) << file.error().message;
    for (const TensorView& tensor : (*file)->tensors()) ASSERT_TRUE((*file)->make_copy(tensor.bytes()));
    const auto path = folder.path() / (std::string(name) + ".gguf");
    const auto written = write_model(**file, path);
    ASSERT_TRUE(written) << written.error().message;
    const auto original = open_encoder(encoder_path(name));
    const auto converted = open_encoder(path);
    ASSERT_TRUE(original && converted);
    const Prompt prompt = TextPrompt{.text = expected.text(0)};
    const bool has_token_labels = original->info().reading.labels_tokens;
    EXPECT_EQ(read_text(*original, reading(prompt, Pooling::kModel)),
              read_text(*converted, reading(prompt, Pooling::kModel)));
    if (original->info().reading.labels.empty() || has_token_labels) continue;
    const Prompt pair = PairPrompt{expected.text(0), expected.text(1)};
    EXPECT_EQ(read_text(*original, reading(pair, Pooling::kLabels)),
              read_text(*converted, reading(pair, Pooling::kLabels)));
    EXPECT_EQ(original->info().reading.labels, converted->info().reading.labels);
  }
}

// A query and a document in the file's own template; control tokens that a client wrote stay text.
TEST(encoders, a_decoder_that_answers_yes_ranks_as_the_library_says) {
  const Expected expected("qwen3_reranker");
  const std::filesystem::path folder = encoder_path("qwen3_reranker");
  for (const auto& [path, backend, difference] :
       {std::tuple(folder / "model.gguf", "reference", 2e-4), std::tuple(folder / "model.gguf", "cpu", 0.2),
        std::tuple(folder, "reference", 2e-4), std::tuple(folder, "cpu", 0.2)}) {
    const auto engine = open_encoder(path, backend);
    ASSERT_NE(engine, nullptr);
    const ReadingInfo& info = engine->info().reading;
    EXPECT_TRUE(info.ranks_pairs() && info.answers_yes && !info.writes);
    EXPECT_EQ(info.labels, (std::vector<std::string>{"yes", "no"}));
    const Prompt pair = PairPrompt{expected.text(1), expected.text(0)};
    const auto tokens = engine->tokenize(pair);
    ASSERT_TRUE(tokens);
    EXPECT_EQ(*tokens, expected.json["pair"].get<std::vector<TokenId>>());
    EXPECT_LT(worst_difference(read_text(*engine, reading(pair, Pooling::kLabels)), expected.floats("pair_labels")),
              difference);
    const auto typed = engine->tokenize(PairPrompt{"a<|im_end|>", "<|im_start|>"});
    ASSERT_TRUE(typed);
    EXPECT_EQ(std::ranges::count(*typed, TokenId{2}), std::ranges::count(*tokens, TokenId{2}));
    EXPECT_EQ(std::ranges::count(*typed, TokenId{1}), std::ranges::count(*tokens, TokenId{1}));
    Request cut = reading(pair, Pooling::kLabels);
    cut.max_prompt_tokens = 10;
    EXPECT_FALSE(engine->generate(cut));
  }
}

TEST(encoders, rows_that_are_shown_do_not_count_to_the_last_ones_vector) {
  const auto engine = open_encoder(encoder_path("qwen3_embedding"));
  ASSERT_NE(engine, nullptr);
  const Prompt prompt = TextPrompt{.text = "the small engine reads"};
  for (const Pooling pooling : {Pooling::kLast, Pooling::kFirst, Pooling::kMean}) {
    Request request = reading(prompt, pooling);
    const std::vector<float> alone = read_text(*engine, request);
    request.sampling.prompt_logprobs = 0;
    request.sampling.max_tokens = 0;
    const auto beside = engine->generate(request);
    ASSERT_TRUE(beside) << beside.error().message;
    EXPECT_EQ(beside->embedding, alone);
    EXPECT_EQ(static_cast<int64_t>(beside->prompt_logprobs.size()) + 1, beside->summary.usage.prompt_tokens);
  }
}

TEST(encoders, say_what_their_files_say) {
  const auto bert = open_encoder(encoder_path("bert"));
  ASSERT_NE(bert, nullptr);
  const ReadingInfo& info = bert->info().reading;
  EXPECT_FALSE(info.writes);
  EXPECT_EQ(info.pooling, Pooling::kMean);
  EXPECT_TRUE(info.normalises);
  EXPECT_TRUE(info.labels.empty());
  ASSERT_EQ(info.prompts.size(), 2u);
  EXPECT_EQ(bert->info().n_ctx, 64);  // of sentence_bert_config.json; the positions are 96
  const auto labels = open_encoder(encoder_path("roberta_pairs"));
  ASSERT_NE(labels, nullptr);
  EXPECT_EQ(labels->info().reading.labels, (std::vector<std::string>{"label 0", "label 1", "label 2"}));
  const auto writer = open_encoder(encoder_path("qwen3_embedding"));
  ASSERT_NE(writer, nullptr);
  EXPECT_TRUE(writer->info().reading.writes);
  EXPECT_EQ(writer->info().reading.pooling, Pooling::kLast);
}

// Not a label of two, but the logit of one word; and the pair's tokens as FlagEmbedding makes them.
TEST(encoders, a_decoder_that_says_yes_ranks_as_the_library_says) {
  const Expected expected("gemma_reranker");
  for (const auto& [backend, difference] : {std::pair("reference", 2e-4), std::pair("cpu", 0.2)}) {
    const auto engine = open_encoder(encoder_path("gemma_reranker"), backend);
    ASSERT_NE(engine, nullptr);
    EXPECT_TRUE(engine->info().reading.ranks_pairs());
    EXPECT_FALSE(engine->info().reading.writes);
    EXPECT_EQ(engine->info().reading.labels, std::vector<std::string>{"Yes"});
    const PairPrompt pair{expected.text(1), expected.text(0)};
    const auto tokens = engine->tokenize(pair);
    ASSERT_TRUE(tokens) << tokens.error().message;
    EXPECT_EQ(*tokens, expected.json["pair"].get<std::vector<TokenId>>());
    EXPECT_LT(worst_difference(read_text(*engine, reading(pair, Pooling::kLabels)), expected.floats("pair_labels")),
              difference);
  }
}

TEST(encoders, tasks_of_a_folder_are_adapters_with_prompts_of_their_own) {
  const Expected expected("jina_v3_published");
  for (const auto& [backend, tolerance] : {std::pair("reference", kReference), std::pair("cpu", kCpu)}) {
    const auto engine = open_encoder(encoder_path("jina_v3_published"), backend);
    ASSERT_NE(engine, nullptr);
    ASSERT_EQ(engine->adapters().size(), 3u);
    for (const AdapterInfo& task : engine->adapters()) {
      SCOPED_TRACE(task.name + " on " + backend);
      EXPECT_EQ(task.format, "task");
      EXPECT_EQ(task.rank, 4);  // the embedding's with that of token types
      for (size_t i = 0; i < 2; ++i) {
        Request request = reading(TextPrompt{.text = task.prompt + expected.text(i)}, Pooling::kModel);
        request.adapters = {{.name = task.name}};
        const auto wanted = expected.json["tasks"][task.name][i].get<std::vector<float>>();
        EXPECT_LT(worst_distance(read_text(*engine, request), wanted, wanted.size()), tolerance.distance);
      }
    }
  }
  EngineOptions options;
  options.model_path = encoder_path("jina_v3_published");
  options.adapters = {{.name = "poems", .path = encoder_path("jina_v3_published")}};
  const auto refused = Engine::open(options);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("is none of its tasks"), std::string::npos) << refused.error().message;
}

}  // namespace
}  // namespace candor::testing
