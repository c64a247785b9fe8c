// The shipped model: the engine's perplexity on the held-out text equals the trainer's, and what each weight format and
// the cpu backend's own arithmetic add.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "accuracy/comparison.h"
#include "support/memory_model_file.h"
#include "support/shared_data.h"
#include "tensor/encode.h"

namespace candor::testing {
namespace {

using nlohmann::json;

class Pocket : public ::testing::Test {
 protected:
  static std::unique_ptr<formats::ModelFile> open(const std::string& name) {
    auto file = formats::open_model_file(project_file("models/pocket/" + name));
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : nullptr;
  }

  // The held-out documents, at most n of them.
  static std::vector<Text> documents(size_t n) {
    std::ifstream stream(project_file("models/pocket/heldout.txt"));
    std::vector<Text> texts;
    for (std::string line; texts.size() < n && std::getline(stream, line);) {
      texts.push_back(json::parse(line).at("tokens").get<Text>());
    }
    return texts;
  }

  static int32_t longest(const std::vector<Text>& texts) {
    size_t n = 0;
    for (const Text& text : texts) n = std::max(n, text.size());
    return static_cast<int32_t>(n);
  }

  // What the trainer measured, or 0 where it left no record.
  static double trainers_perplexity(const std::string& name) {
    std::ifstream stream(project_file("models/pocket/perplexity.json"));
    const json report = json::parse(stream, nullptr, false);
    return report.is_object() && report.at("files").contains(name)
               ? report.at("files").at(name).at("perplexity").get<double>()
               : 0.0;
  }
};

constexpr size_t kAll = SIZE_MAX;

TEST_F(Pocket, perplexity_in_f32_on_the_reference_is_the_trainers) {
  const std::string name = "pocket-f32.gguf";
  CANDOR_REQUIRE_DATA(project_file("models/pocket/" + name));
  CANDOR_REQUIRE_DATA(project_file("models/pocket/perplexity.json"));
  const std::vector<Text> texts = documents(kAll);
  Subject reference = open_subject(*open(name), "reference", longest(texts));
  ASSERT_NE(reference.scorer, nullptr);
  const double ours = perplexity_of(reference, texts);
  const double theirs = trainers_perplexity(name);
  std::printf("  perplexity %.6f, the trainer's %.6f\n", ours, theirs);
  EXPECT_NEAR(ours, theirs, 0.005 * theirs);
}

TEST_F(Pocket, the_shipped_q8_0_file_on_the_cpu_adds_less_than_one_per_cent) {
  CANDOR_REQUIRE_DATA(project_file("models/pocket/pocket-q8_0.gguf"));
  CANDOR_REQUIRE_DATA(project_file("models/pocket/perplexity.json"));
  const std::vector<Text> texts = documents(kAll);
  const auto file = open("pocket-q8_0.gguf");
  Subject cpu = open_subject(*file, "cpu", longest(texts));
  ASSERT_NE(cpu.scorer, nullptr);
  const double ours = perplexity_of(cpu, texts);
  const double theirs = trainers_perplexity("pocket-f32.gguf");
  std::printf("  perplexity %.6f in Q8_0 on the cpu, the trainer's %.6f in F32 (%+.3f %%)\n", ours, theirs,
              100.0 * (ours / theirs - 1.0));
  EXPECT_NEAR(ours, theirs, 0.01 * theirs);
}

TEST_F(Pocket, the_shipped_file_on_the_cpu_stays_within_the_bounds_of_the_contract) {
  CANDOR_REQUIRE_DATA(project_file("models/pocket/pocket-q8_0.gguf"));
  const std::vector<Text> texts = documents(12);
  const auto file = open("pocket-q8_0.gguf");
  Subject reference = open_subject(*file, "reference", longest(texts));
  Subject cpu = open_subject(*file, "cpu", longest(texts));
  ASSERT_TRUE(reference.scorer && cpu.scorer);
  expect_within_contract("pocket Q8_0", compare(reference, cpu, texts));
}

// The same model with every matrix in `dtype`.
std::unique_ptr<MemoryModelFile> recoded(const formats::ModelFile& file, DType dtype) {
  auto result = std::make_unique<MemoryModelFile>();
  for (const formats::MetaEntry& entry : file.metadata()) result->set(entry.key, entry.value);
  for (const TensorView& tensor : file.tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.shape.n_elements()));
    decode_rows(tensor, values.data());
    const DType target = tensor.shape.n_dims == 1 ? DType::kF32 : dtype;
    std::vector<std::byte> data(*tensor_bytes_of(target, tensor.shape));
    encode_rows(target, values.data(), tensor.shape.n_rows(), tensor.shape.row_elements(), data.data());
    result->add_tensor(std::string(tensor.name), target, tensor.shape, std::move(data));
  }
  return result;
}

TEST_F(Pocket, every_weight_format_on_the_cpu_stays_within_the_bounds_of_the_contract) {
  CANDOR_REQUIRE_DATA(project_file("models/pocket/pocket-f32.gguf"));
  const std::vector<Text> texts = documents(2);
  const auto file = open("pocket-f32.gguf");
  for (const DTypeInfo& info : dtype_table()) {
    if (!info.is_weight) continue;
    const auto coded = recoded(*file, info.dtype);
    Subject reference = open_subject(*coded, "reference", longest(texts));
    Subject cpu = open_subject(*coded, "cpu", longest(texts));
    ASSERT_TRUE(reference.scorer && cpu.scorer) << info.name;
    // Rounded to one or two bits without a search, the model is no model any more, and small differences grow.
    const Comparison comparison = compare(reference, cpu, texts);
    constexpr double kBroken = 5.0;  // perplexity; in F32 it is 1.4
    expect_within_contract(std::string(info.name), comparison, comparison.truth_perplexity > kBroken ? 5.0 : 1.0);
  }
}

}  // namespace
}  // namespace candor::testing
