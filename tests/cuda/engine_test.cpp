// Engines whose model the emulated device computes: answers are those of the CPU, bit for bit, one by one and together,
// in chunks, behind drafts, and over several devices.

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "cuda/emulated.h"
#include "engine/engine_impl.h"
#include "engine/open/loaded_model.h"
#include "engine/open/shared_device.h"
#include "engine_fixture.h"
#include "ranks/rank_requests.h"
#include "support/thread_ranks.h"
#include "support/with_head.h"

namespace candor {
namespace {

using testing::Crowd;

using Change = std::function<void(EngineOptions&)>;

std::vector<Completion> answers(const std::filesystem::path& path, const engine::BackendFactory& backend,
                                const Change& change, bool is_together) {
  EngineOptions options = testing::rank_test_options(path);
  change(options);
  auto engine = engine::open_with_backend(options, backend);
  EXPECT_TRUE(engine.has_value()) << path << ": " << (engine ? "" : engine.error().message);
  if (!engine) return {};
  const std::vector<Request> requests = testing::rank_test_requests((*engine)->info());
  if (is_together) return Crowd(**engine).run(requests);
  std::vector<Completion> all;
  for (const Request& request : requests) all.push_back(testing::complete(**engine, request));
  return all;
}

void changes_nothing(EngineOptions&) {}

// How many of the device's answers, all together, are not those of the CPU, one by one.
int count_different(const std::filesystem::path& path, const engine::BackendFactory& backend,
                    const Change& change = changes_nothing, const Change& change_cpu = changes_nothing) {
  const auto cpu = [](const EngineOptions&) { return backend::make_cpu_backend({.n_threads = 1}); };
  const auto expected = answers(path, cpu, change_cpu, false);
  const auto found = answers(path, backend, change, true);
  EXPECT_GE(expected.size(), 5u);
  if (found.size() != expected.size()) return static_cast<int>(expected.size());
  int n_different = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const bool is_same = found[i].tokens == expected[i].tokens && found[i].logprobs == expected[i].logprobs &&
                         found[i].top_logprobs == expected[i].top_logprobs;
    n_different += is_same ? 0 : 1;
  }
  return n_different;
}

Result<std::unique_ptr<backend::Backend>> emulated(const EngineOptions&) {
  return testing::emulated_backend();
}

Result<std::unique_ptr<backend::Backend>> emulated_rank(int32_t) {
  return testing::emulated_backend();
}

class CudaEngine : public testing::TinyModelTest {};

TEST_F(CudaEngine, answers_are_those_of_the_cpu) {
  for (const DType dtype : {DType::kQ4_K, DType::kW8A8, DType::kBF16}) {
    const auto path = tiny_path(testing::tiny_model_of(dtype, 64, 256));
    EXPECT_EQ(count_different(path, emulated), 0) << dtype_info(dtype).name;
  }
}

TEST_F(CudaEngine, says_what_the_device_holds_and_did) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256));
  auto engine = engine::open_with_backend(testing::rank_test_options(path), emulated);
  ASSERT_TRUE(engine) << engine.error().message;
  const DeviceStats before = (*engine)->device();
  static_cast<void>(testing::complete(**engine, testing::rank_test_requests((*engine)->info()).front()));
  const DeviceStats after = (*engine)->device();
  EXPECT_EQ(after.memory_bytes, uint64_t{16} << 30);
  EXPECT_GT(after.weight_bytes, 0u);
  EXPECT_LE(after.weight_bytes, (*engine)->info().weight_bytes);
  EXPECT_EQ(after.kv_bytes, (*engine)->info().kv_bytes);
  EXPECT_GT(after.work_bytes, 0u);
  EXPECT_LT(after.free_bytes, after.memory_bytes);
  EXPECT_GT(after.copied_in_bytes, before.copied_in_bytes);
  EXPECT_GT(after.copied_out_bytes, before.copied_out_bytes);
  EXPECT_GT(after.launches, before.launches);
}

TEST_F(CudaEngine, keys_and_values_of_every_type_give_the_answers_of_the_cpu) {
  for (const KvType type : {KvType::kF32, KvType::kQ8_0, KvType::kQ4}) {
    const Change keeps = [&](EngineOptions& o) { o.kv_type = type; };
    const auto path = tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256));
    EXPECT_EQ(count_different(path, emulated, keeps, keeps), 0) << name_of(type);
    EXPECT_EQ(count_different(testing::goldens() / "deepseek_v2", emulated, keeps, keeps), 0) << name_of(type);
  }
}

TEST_F(CudaEngine, chunks_preemption_and_drafts_change_nothing) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256));
  const std::vector<Change> changes = {
      [](EngineOptions& o) { o.max_rows = 7; },
      [](EngineOptions& o) { o.kv_blocks = 6; },
      [](EngineOptions& o) {
        o.speculation = Speculation::kNgram;
        o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) EXPECT_EQ(count_different(path, emulated, changes[i]), 0) << i;
}

// Of each kind, on the device alone and on both sides.
TEST_F(CudaEngine, drafts_of_heads_change_nothing) {
  const auto path = testing::goldens() / "llama";
  const auto drafting = [](const std::filesystem::path& head, std::optional<int32_t> gpu_layers) {
    return [head, gpu_layers](EngineOptions& o) {
      o.speculation = Speculation::kDraft;
      o.draft_path = head;
      o.gpu_layers = gpu_layers;
      o.costs = StepCosts{.points = {{1, 1.0}, {16, 1.0}}, .attend_ns = 0.0};
    };
  };
  const auto both = [](const EngineOptions& options) -> Result<std::unique_ptr<backend::Backend>> {
    CANDOR_ASSIGN(const auto file, engine::open_model_file(options));
    return engine::share_with_host(options, *file, testing::emulated_backend(), testing::portable_backend());
  };
  for (const auto& head : {testing::project_file("tests/eagle/goldens/specforge"),
                           testing::write_head(path / "model.gguf", folder_.path() / "head.gguf")}) {
    EXPECT_EQ(count_different(path, emulated, drafting(head, {})), 0) << head;
    EXPECT_EQ(count_different(path, both, drafting(head, 1)), 0) << head << " on both sides";
  }
}

TEST_F(CudaEngine, devices_that_share_a_model_give_the_answers_of_one) {
  const auto path = tiny_path(testing::tiny_model_of(DType::kQ4_K, 64, 256));
  EXPECT_EQ(count_different(path, testing::thread_ranks(2, emulated_rank)), 0);
  for (const char* family : {"qwen3moe", "gpt_oss", "deepseek_v2"}) {
    EXPECT_EQ(count_different(testing::goldens() / family, testing::thread_ranks(2, emulated_rank)), 0) << family;
  }
}

// The device has some layers, or all but experts, or what the plan gives it.
TEST_F(CudaEngine, a_device_and_the_cpu_together_give_the_answers_of_the_cpu) {
  for (const char* family : {"llama", "qwen3moe"}) {
    const auto path = testing::goldens() / family;
    const auto shared = [&](const EngineOptions& options) -> Result<std::unique_ptr<backend::Backend>> {
      CANDOR_ASSIGN(const auto file, engine::open_model_file(options));
      return engine::share_with_host(options, *file, testing::emulated_backend(), testing::portable_backend());
    };
    const std::vector<Change> changes = {[](EngineOptions& o) { o.gpu_layers = 1; },
                                         [](EngineOptions& o) { o.cpu_experts = 2; }, [](EngineOptions&) {}};
    for (size_t i = 0; i < changes.size(); ++i) EXPECT_EQ(count_different(path, shared, changes[i]), 0) << family << i;
  }
}

}  // namespace
}  // namespace candor
