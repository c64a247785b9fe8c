// Models with an adapter added to their weights, against the library's logits and against the adapter beside the model.

#include <gtest/gtest.h>

#include "adapters/adapted_model.h"
#include "adapters/golden.h"
#include "merge/merged_model.h"
#include "model/hub/hub_writer.h"
#include "quantize/quantizer.h"
#include "support/temp_folder.h"

namespace candor::testing {
namespace {

Result<std::unique_ptr<formats::ModelFile>> merged(const std::filesystem::path& base, const std::string& adapter,
                                                   const merge::MergeOptions& options = {}) {
  CANDOR_ASSIGN(auto file, model::open_model(base));
  return merge::merge_adapter(std::move(file), adapter_path(adapter), options);
}

std::vector<Logits> logits_of(Result<std::unique_ptr<formats::ModelFile>> file) {
  return AdaptedModel(std::move(file), "reference").logits({});
}

constexpr float kMerged = 1e-4f;  // of the largest logit

TEST(merged_models, say_what_the_library_says_with_the_adapter) {
  for (const std::string name : kAdapters) {
    const std::vector<Logits> wanted = golden_logits(adapter_path(name) / "expected.f32");
    const auto file = [&] { return merged(model_path(base_of(name)), name, {.types = merge::MergedTypes::kF32}); };
    EXPECT_LT(largest_difference(logits_of(file()), wanted), kMerged * size_of(wanted)) << name;
  }
}

TEST(merged_models, are_the_same_written_as_a_file_or_a_folder) {
  const TempFolder folder;
  for (const std::string name : kAdapters) {
    const auto file = merged(model_path(base_of(name)), name, {.types = merge::MergedTypes::kF32, .n_threads = 2});
    ASSERT_TRUE(file) << file.error().message;
    const std::filesystem::path gguf = folder.path() / (name + ".gguf"), hub = folder.path() / name;
    ASSERT_TRUE(quantize::write_gguf(**file, gguf, {})) << name;
    const auto written = model::write_hub_folder(**file, hub, {});
    ASSERT_TRUE(written) << name << ": " << written.error().message;
    const std::vector<Logits> wanted = golden_logits(adapter_path(name) / "expected.f32");
    const std::vector<Logits> seen = logits_of(model::open_model(gguf));
    EXPECT_LT(largest_difference(seen, wanted), kMerged * size_of(wanted)) << name;
    EXPECT_EQ(logits_of(model::open_model(hub)), seen) << name;
  }
}

TEST(merged_models, have_as_much_of_the_adapter_as_the_scale_says) {
  for (const std::string name : {"llama_all", "llama_dora", "llama_saved", "llama_embedding"}) {
    AdaptedModel beside(model_path(base_of(name)), "reference");
    ASSERT_TRUE(beside.add(adapter_path(name)));
    const std::vector<Logits> wanted = beside.logits({{0, 0.25f}});
    const auto seen =
        logits_of(merged(model_path(base_of(name)), name, {.scale = 0.25, .types = merge::MergedTypes::kF32}));
    EXPECT_LT(largest_difference(seen, wanted), kMerged * size_of(wanted)) << name;
  }
}

// A quantised model stays one: each weight is off by at most half a step, and by the rounding of the step itself.
TEST(merged_models, keep_the_types_of_the_model) {
  const TempFolder folder;
  const std::filesystem::path small = folder.path() / "q8.gguf";
  const auto base = model::open_model(model_path("llama"));
  quantize::QuantizeOptions q8;
  q8.recipe = *quantize::find_recipe("q8_0");
  ASSERT_TRUE(base && quantize::write_gguf(**base, small, q8));
  const auto file = merged(small, "llama_all");
  ASSERT_TRUE(file) << file.error().message;
  const auto original = model::open_model(small);
  for (const TensorView& tensor : (*file)->tensors()) {
    EXPECT_EQ(tensor.dtype, (*original)->find(tensor.name)->dtype) << tensor.name;
  }
  const auto exact = merged(small, "llama_all", {.types = merge::MergedTypes::kF32});
  for (const TensorView& tensor : (*file)->tensors()) {
    const TensorView& sum = *(*exact)->find(tensor.name);
    ASSERT_TRUE((*file)->make_copy(tensor.bytes()) && (*exact)->make_copy(sum.bytes()));
    std::vector<float> seen(static_cast<size_t>(tensor.shape.n_elements())), wanted(seen.size());
    decode_rows(tensor, seen.data());
    decode_rows(sum, wanted.data());
    for (size_t i = 0; i < seen.size(); ++i) {
      const size_t block = i / 32 * 32;
      float largest = 0.0f;
      for (size_t k = block; k < std::min(block + 32, seen.size()); ++k)
        largest = std::max(largest, std::abs(wanted[k]));
      ASSERT_NEAR(seen[i], wanted[i], 0.57f * largest / 127.0f) << tensor.name << " " << i;
    }
  }
}

TEST(merged_models, are_refused_where_the_adapter_is) {
  const auto other = merged(model_path("qwen2"), "llama_all");
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().message.find("another model"), std::string::npos) << other.error().message;
  EXPECT_FALSE(merged(model_path("llama"), "nothing_there"));
}

}  // namespace
}  // namespace candor::testing
