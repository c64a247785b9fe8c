// Every family against logits that the `transformers` library gives for the same tiny model (make_goldens.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "backend/all/make_backend.h"
#include "base/hash.h"
#include "base/sha256.h"
#include "formats/json_text.h"
#include "golden_logits.h"
#include "model/arch_text.h"
#include "model/hub/hub_folder.h"
#include "model/hub/hub_writer.h"
#include "model/model.h"
#include "quantize/quantizer.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/temp_folder.h"
#include "text/tokenizer/tokenizer.h"

namespace candor::testing {
namespace {

constexpr int32_t kTokens = kGoldenTokens;
constexpr int32_t kWindow = 12;

struct Golden {
  const char* name;
  bool has_gguf = true;
  // llama.cpp's converter drops Mistral's window, so that its file agrees only where the window holds everything.
  int32_t gguf_rows = kTokens;
  // llama.cpp itself attends to everything in these, whose windows it knows by the number of blocks or not at all.
  int32_t llama_cpp_rows = kTokens;
};

constexpr Golden kGoldens[] = {
    {"llama"},       {"mistral", true, kWindow, kWindow},
    {"mixtral"},     {"qwen2"},
    {"qwen3"},       {"qwen3moe"},
    {"gemma2"},      {"gemma3"},
    {"granite"},     {"phi3", true, kTokens, kWindow},
    {"gpt2"},        {"olmo2"},
    {"smollm3"},     {"bloom"},
    {"xglm", false}, {"gpt_oss"},
    {"starcoder2"},  {"gpt_neox"},
    {"gptj", false}, {"phi"},
    {"stablelm"},    {"falcon"},
    {"falcon40"},    {"cohere"},
    {"cohere2"},     {"olmo"},
    {"olmo3"},       {"olmoe"},
    {"mpt"},         {"opt", false},
    {"gpt_bigcode"}, {"gemma"},
    {"glm4"},        {"seed_oss"},
    {"nemotron"},    {"arcee"},
    {"ernie4_5"},    {"exaone4", true, kTokens, kWindow},
    {"glm"},         {"qwen3_5_text"},
    {"qwen3_next"},  {"qwen3_5_moe_text"},
    {"deepseek_v2"}, {"deepseek_v3"},
    {"kimi_k2"},     {"glm4_moe"},
    {"glm4_moe_air"}, {"qwen2_moe"},
    {"minimax_m2"},  {"mimo", false},
    {"glm4_moe_lite"}, {"dots1"},
    {"ministral3"},  {"internlm2"},
    {"internlm3"},   {"baichuan"},
    {"minicpm"},     {"ministral", false},
    {"lfm2"},        {"lfm2_moe"},
    {"granitemoehybrid"}, {"granitemoehybrid_dense"},
    {"falcon_h1"},   {"falcon_h1_norm"},
    {"nemotron_h"},  {"nemotron_h_moe"},
    {"kimi_linear"},
    {"gemma4_text"}, {"gemma4_moe"},
    {"llama4_text", true, kWindow, kWindow},  // its file says neither chunks nor how queries grow
    {"qwen3_5"},     {"qwen3_5_moe"},
    {"mistral4", true, kWindow, kWindow},  // nor does this one's
    {"ernie4_5_moe"},
    {"granitemoe"},  {"granitemoeshared"},
    {"hunyuan_v1_dense"}, {"hunyuan_v1_moe"},
    {"exaone_moe"},  {"bamba", false},
    {"olmo_hybrid", false}, {"olmo_hybrid_rotary", false},
    {"cwm", false},         {"helium", false},
    {"vaultgemma", false},  {"flex_olmo", false},
    {"youtu", false},       {"persimmon", false},
    {"gpt_neo", false},     {"codegen", false},
    {"nanochat", false},    {"afmoe", false},
};

std::filesystem::path folder_of(const Golden& golden) {
  return goldens() / golden.name;
}

double kl_divergence(const Logits& truth, const Logits& other) {
  const auto log_sum = [](const Logits& row) {
    const double top = *std::ranges::max_element(row);
    double sum = 0.0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - top);
    return top + std::log(sum);
  };
  const double truth_sum = log_sum(truth);
  const double other_sum = log_sum(other);
  double kl = 0.0;
  for (size_t i = 0; i < truth.size(); ++i) {
    const double log_p = static_cast<double>(truth[i]) - truth_sum;
    kl += std::exp(log_p) * (log_p - (static_cast<double>(other[i]) - other_sum));
  }
  return kl;
}

std::vector<Logits> logits_of(const formats::ModelFile& file, const char* backend, size_t chunk) {
  auto made = backend::make_backend(backend, {.n_threads = 2});
  EXPECT_TRUE(made) << made.error().message;
  const auto runner = ModelRunner::make(file, std::move(*made), {.max_rows = kTokens, .n_blocks = 4});
  return runner == nullptr ? std::vector<Logits>{} : runner->run(golden_prompt(), chunk);
}

// numerics.md: mean KL at most 1e-3, the same top token in 99 % of positions where the gap exceeds 0.1.
void expect_cpu_agrees(const formats::ModelFile& file) {
  const std::vector<Logits> truth = logits_of(file, "reference", kTokens);
  const std::vector<Logits> ours = logits_of(file, "cpu", kTokens);
  ASSERT_EQ(ours.size(), truth.size());
  double kl = 0.0;
  for (size_t row = 0; row < truth.size(); ++row) {
    kl += kl_divergence(truth[row], ours[row]) / kTokens;
    Logits sorted = truth[row];
    std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater<>());
    if (sorted[0] - sorted[1] <= 0.1f) continue;
    EXPECT_EQ(std::ranges::max_element(truth[row]) - truth[row].begin(),
              std::ranges::max_element(ours[row]) - ours[row].begin())
        << "position " << row;
  }
  EXPECT_LE(kl, 1e-3);
  std::printf("  cpu against reference: mean KL %.2g, worst logit %.4f of %.2f\n", kl,
              static_cast<double>(largest_difference(truth, ours, kTokens)), static_cast<double>(largest_logit(truth)));
  EXPECT_EQ(ours, logits_of(file, "cpu", 7)) << "chunks of 7";
}

// Of a file's tensors, in its order.
std::string sha256_of_tensors(const formats::ModelFile& file) {
  std::string all;
  for (const TensorView& tensor : file.tensors()) {
    all.append(reinterpret_cast<const char*>(tensor.data), tensor.n_bytes);
  }
  return to_hex(sha256(all));
}

class FamilyGolden : public ::testing::TestWithParam<Golden> {};

TEST_P(FamilyGolden, gguf_of_llama_cpp_gives_the_logits_of_transformers) {
  const Golden& golden = GetParam();
  if (!golden.has_gguf) GTEST_SKIP() << "llama.cpp does not know the family";
  auto file = formats::open_model_file(folder_of(golden) / "model.gguf");
  ASSERT_TRUE(file) << file.error().message;
  expect_golden_logits(**file, folder_of(golden) / "expected.f32", golden.gguf_rows);
  expect_cpu_agrees(**file);
}

// Most are made of the folder, as `candor convert` does (golden_store.py).
TEST_P(FamilyGolden, the_made_gguf_has_the_bytes_that_llama_cpp_wrote) {
  const Golden& golden = GetParam();
  if (!golden.has_gguf) GTEST_SKIP() << "llama.cpp does not know the family";
  const auto file = formats::open_model_file(folder_of(golden) / "model.gguf");
  const auto about = formats::read_json_file(
      project_file(std::string("tests/families/goldens/") + golden.name + "/gguf.json"), 1 << 12);
  ASSERT_TRUE(file && about);
  EXPECT_EQ((*file)->info().n_bytes, about->at("bytes").get<uint64_t>());
  EXPECT_EQ(sha256_of_tensors(**file), about->at("sha256").get<std::string>());
}

TEST_P(FamilyGolden, safetensors_give_the_logits_of_transformers) {
  const Golden& golden = GetParam();
  auto file = model::open_model(folder_of(golden));
  ASSERT_TRUE(file) << file.error().message;
  expect_golden_logits(**file, folder_of(golden) / "expected.f32");
  expect_cpu_agrees(**file);
}

TEST_P(FamilyGolden, both_formats_give_the_same_bits) {
  const Golden& golden = GetParam();
  if (!golden.has_gguf) GTEST_SKIP() << "llama.cpp does not know the family";
  auto hub = model::open_model(folder_of(golden));
  auto gguf = model::open_model(folder_of(golden) / "model.gguf");
  ASSERT_TRUE(hub && gguf);
  std::vector<Logits> a = logits_of(**hub, "cpu", kTokens);
  std::vector<Logits> b = logits_of(**gguf, "cpu", kTokens);
  a.resize(static_cast<size_t>(golden.gguf_rows));
  b.resize(static_cast<size_t>(golden.gguf_rows));
  EXPECT_EQ(a, b);
}

// llama_cpp.json: see make_llama_cpp_tokens.py.
TEST_P(FamilyGolden, llama_cpp_ranks_the_same_token_first_where_the_gap_exceeds_a_tenth) {
  const Golden& golden = GetParam();
  if (!golden.has_gguf) GTEST_SKIP() << "llama.cpp does not know the family";
  if (!std::filesystem::exists(folder_of(golden) / "llama_cpp.json")) {
    GTEST_SKIP() << "make_llama_cpp_tokens.py was not run on this golden";
  }
  auto file = formats::open_model_file(folder_of(golden) / "model.gguf");
  const auto theirs = formats::read_json_file(folder_of(golden) / "llama_cpp.json", 1 << 16);
  ASSERT_TRUE(file && theirs && theirs->size() == static_cast<size_t>(kTokens));
  const std::vector<Logits> ours = logits_of(**file, "cpu", kTokens);
  int32_t n_compared = 0;
  for (size_t row = 0; row < static_cast<size_t>(golden.llama_cpp_rows); ++row) {
    Logits sorted = ours[row];
    std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater<>());
    if (sorted[0] - sorted[1] <= 0.1f) continue;
    ++n_compared;
    EXPECT_EQ(std::ranges::max_element(ours[row]) - ours[row].begin(), (*theirs)[row].get<int64_t>()) << row;
  }
  EXPECT_GE(n_compared, golden.llama_cpp_rows / 2);
}

std::vector<std::string> tensor_lines(const formats::ModelFile& file) {
  std::vector<std::string> lines;
  for (const TensorView& tensor : file.tensors()) {
    EXPECT_TRUE(file.make_copy(tensor.bytes()));
    const uint64_t hash = hash_bytes(tensor.bytes());
    lines.push_back(std::string(tensor.name) + " " + to_string(tensor.shape) + " " +
                    std::string(dtype_info(tensor.dtype).name) + " " + std::to_string(hash));
  }
  std::ranges::sort(lines);
  return lines;
}

// To GGUF and back to a folder: the same tensors to the bit, the same architecture, the same tokens.
TEST_P(FamilyGolden, survives_the_way_to_the_other_format_and_back) {
  const TempFolder folder;
  auto original = model::open_model(folder_of(GetParam()));
  ASSERT_TRUE(original) << original.error().message;
  const auto written = quantize::write_gguf(**original, folder.path() / "m.gguf", {});
  ASSERT_TRUE(written) << written.error().message;
  auto gguf = model::open_model(folder.path() / "m.gguf");
  ASSERT_TRUE(gguf) << gguf.error().message;
  const auto back = model::write_hub_folder(**gguf, folder.path() / "m", {});
  ASSERT_TRUE(back) << back.error().message;
  auto again = model::open_model(folder.path() / "m");
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(quantize::write_gguf(**again, folder.path() / "again.gguf", {}));
  auto gguf_again = model::open_model(folder.path() / "again.gguf");
  ASSERT_TRUE(gguf_again) << gguf_again.error().message;
  EXPECT_EQ(tensor_lines(**gguf), tensor_lines(**gguf_again));
  const auto spec = model::read_arch(**original);
  const auto spec_again = model::read_arch(**again);
  ASSERT_TRUE(spec && spec_again);
  EXPECT_EQ(model::to_text(*spec), model::to_text(*spec_again));
  EXPECT_EQ(*spec, *spec_again);
  const auto tokenizer = text::Tokenizer::from_model_file(**original);
  const auto tokenizer_again = text::Tokenizer::from_model_file(**again);
  ASSERT_TRUE(tokenizer && tokenizer_again);
  const std::string text = "Once upon a time, 123 little caf\u00e9s.\n";
  EXPECT_EQ(*(*tokenizer)->encode(text, {}), *(*tokenizer_again)->encode(text, {}));
  EXPECT_EQ((*tokenizer)->special().eos, (*tokenizer_again)->special().eos);
}

// An index of shards, and none of an older model's weights beside the new ones.
TEST(hub_writer, splits_large_models_into_shards_that_read_back_as_the_same_model) {
  const TempFolder folder;
  const auto original = model::open_model(goldens() / "llama");
  ASSERT_TRUE(original) << original.error().message;
  const auto count = [&](const char* ending) {
    return std::ranges::count_if(std::filesystem::directory_iterator(folder.path()),
                                 [&](const auto& entry) { return entry.path().filename().string().ends_with(ending); });
  };
  for (const uint64_t max_shard_bytes : {uint64_t{60'000}, uint64_t{5'000'000'000}}) {
    const bool is_split = max_shard_bytes < 1'000'000;
    model::HubWriteOptions options;
    options.max_shard_bytes = max_shard_bytes;
    const auto written = model::write_hub_folder(**original, folder.path(), options);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(count("model.safetensors.index.json"), is_split ? 1 : 0);
    EXPECT_EQ(count("model.safetensors"), is_split ? 0 : 1);
    const auto again = model::open_model(folder.path());
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ((*again)->info().paths.size() > 3, is_split);
    EXPECT_EQ(tensor_lines(**original), tensor_lines(**again));
  }
}

INSTANTIATE_TEST_SUITE_P(families, FamilyGolden, ::testing::ValuesIn(kGoldens),
                         [](const auto& golden) { return std::string(golden.param.name); });

}  // namespace
}  // namespace candor::testing
