// Adapters of PEFT on models of many families, against the library's logits.

#include <gtest/gtest.h>

#include "adapters/adapted_model.h"
#include "adapters/golden.h"

namespace candor::testing {
namespace {

TEST(adapter_goldens, say_what_the_library_says) {
  for (const std::string name : kAdapters) {
    const std::vector<Logits> wanted = golden_logits(adapter_path(name) / "expected.f32");
    AdaptedModel reference(model_path(base_of(name)), "reference");
    ASSERT_TRUE(reference.add(adapter_path(name))) << name;
    EXPECT_LT(largest_difference(reference.logits({{0, 1.0f}}), wanted), kReference * size_of(wanted)) << name;
    EXPECT_GT(largest_difference(reference.logits({}), wanted), 0.1f) << name;
    AdaptedModel cpu(model_path(base_of(name)), "cpu");
    ASSERT_TRUE(cpu.add(adapter_path(name))) << name;
    EXPECT_LT(largest_difference(cpu.logits({{0, 1.0f}}), wanted), kCpu * size_of(wanted)) << name;
  }
}

TEST(adapter_goldens, are_the_same_on_the_models_gguf_file) {
  for (const std::string name : kAdapters) {
    const std::filesystem::path gguf = model_path(base_of(name)) / "model.gguf";
    if (!std::filesystem::exists(gguf)) continue;
    AdaptedModel folder(model_path(base_of(name)), "cpu"), file(gguf, "cpu");
    ASSERT_TRUE(folder.add(adapter_path(name)) && file.add(adapter_path(name))) << name;
    EXPECT_EQ(folder.logits({{0, 1.0f}}), file.logits({{0, 1.0f}})) << name;
  }
}

TEST(adapter_goldens, are_the_same_as_llama_cpps_converter_writes_them) {
  int32_t n_files = 0;
  for (const std::string name : kAdapters) {
    const std::filesystem::path gguf = adapter_path(name) / "adapter.gguf";
    if (!std::filesystem::exists(gguf)) continue;
    ++n_files;
    AdaptedModel model(model_path(base_of(name)), "cpu");
    ASSERT_TRUE(model.add(adapter_path(name)) && model.add(gguf)) << name;
    EXPECT_EQ(model.logits({{0, 1.0f}}), model.logits({{1, 1.0f}})) << name;
  }
  EXPECT_EQ(n_files, 2);
}

TEST(adapter_goldens, two_are_added_each_by_its_scale) {
  const std::vector<Logits> wanted = golden_logits(adapter_path("both.f32"));
  for (const auto& [backend, tolerance] : {std::pair("reference", kReference), std::pair("cpu", kCpu)}) {
    AdaptedModel model(model_path("llama"), backend);
    ASSERT_TRUE(model.add(adapter_path("llama_all")) && model.add(adapter_path("llama_patterns")));
    const std::vector<Logits> seen = model.logits({{0, 0.5f}, {1, 1.0f}});
    EXPECT_LT(largest_difference(seen, wanted), tolerance * size_of(wanted)) << backend;
    EXPECT_EQ(model.logits({{0, 0.5f}, {1, 1.0f}}, 3), seen);
  }
}

}  // namespace
}  // namespace candor::testing
