// Whole models on the emulated device and on the CPU by the portable kernels: 0 bits differ. Every weight format, every
// family of the goldens (tests/families), the shipped model, and a stories model where its file is at hand.

#include <gtest/gtest.h>

#include <filesystem>

#include "cuda/emulated.h"
#include "formats/model_file.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/model_runner.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"
#include "tensor/weight_formats.h"

namespace candor::testing {
namespace {

std::vector<TokenId> prompt_of(const model::Model& model, size_t n_tokens) {
  const auto n_vocab = static_cast<uint32_t>(model.spec().vocab);
  std::vector<TokenId> tokens;
  for (uint32_t i = 0; i < n_tokens; ++i) tokens.push_back(static_cast<TokenId>((5 + 37 * i * i + 11 * i) % n_vocab));
  return tokens;
}

// A prompt in chunks, then single tokens, beside another sequence that has the first one's beginning.
std::vector<Logits> answer_of(const formats::ModelFile& file, std::unique_ptr<backend::Backend> backend,
                              size_t n_tokens) {
  const auto runner = ModelRunner::make(file, std::move(backend), {.max_rows = 64, .n_blocks = 8});
  if (runner == nullptr) return {};
  const std::vector<TokenId> tokens = prompt_of(runner->model(), n_tokens);
  const auto middle = tokens.begin() + static_cast<ptrdiff_t>(n_tokens / 2);
  const size_t first = runner->new_sequence();
  std::vector<Logits> rows = runner->step({{first, {tokens.begin(), middle}}});
  const size_t second = runner->new_sequence();
  for (auto& more : {runner->step({{first, {middle, tokens.end() - 1}}, {second, {tokens.begin(), middle}}}),
                     runner->step({{second, {tokens.back()}}, {first, {tokens.back()}}})}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  const auto health = runner->backend().health();
  EXPECT_TRUE(health) << health.error().message;
  return rows;
}

void expect_equal_answers(const formats::ModelFile& file, size_t n_tokens, const std::string& what) {
  const std::vector<Logits> wanted = answer_of(file, portable_backend(), n_tokens);
  const std::vector<Logits> seen = answer_of(file, emulated_backend(), n_tokens);
  ASSERT_EQ(seen.size(), wanted.size()) << what;
  ASSERT_FALSE(seen.empty()) << what;
  for (size_t row = 0; row < seen.size(); ++row) {
    ASSERT_EQ(first_difference(seen[row], wanted[row]), -1) << what << ", row " << row;
  }
}

class CudaFormats : public ::testing::TestWithParam<DType> {};

TEST_P(CudaFormats, have_the_bits_of_the_cpu) {
  const auto file = make_tiny_model(tiny_model_of(GetParam(), GetParam() == DType::kQ4_K ? 128 : 64, 256));
  expect_equal_answers(*file, 9, std::string(dtype_info(GetParam()).name));
}

INSTANTIATE_TEST_SUITE_P(formats, CudaFormats, ::testing::ValuesIn(weight_dtypes()),
                         [](const auto& each) { return std::string(dtype_info(each.param).name); });

std::vector<std::string> families() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(project_file("tests/families/goldens"))) {
    if (std::filesystem::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

class CudaFamilies : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaFamilies, have_the_bits_of_the_cpu) {
  const auto file = model::open_model(goldens() / GetParam());
  ASSERT_TRUE(file) << file.error().message;
  expect_equal_answers(**file, 22, GetParam());
}

INSTANTIATE_TEST_SUITE_P(families, CudaFamilies, ::testing::ValuesIn(families()),
                         [](const auto& each) { return each.param; });

TEST(CudaModels, shipped_and_trained_ones_have_the_bits_of_the_cpu) {
  for (const auto& path : {project_file("models/pocket/pocket.gguf"), shared_data() / "models" / "stories260K.gguf"}) {
    if (!std::filesystem::exists(path)) continue;
    const auto file = formats::open_model_file(path);
    ASSERT_TRUE(file) << file.error().message;
    expect_equal_answers(**file, 40, path.filename().string());
  }
}

}  // namespace
}  // namespace candor::testing
