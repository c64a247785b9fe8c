// A GPU as the device, emulated or the card that CANDOR_TEST_GPU names: the bits of the CPU alone.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_backend.h"
#include "backend/cuda/emulation/device_test_support.h"
#include "mixed/random_program.h"
#include "mixed/two_sides.h"
#include "model/hub/hub_folder.h"
#include "model/model.h"
#include "support/model_runner.h"
#include "support/shared_data.h"

namespace candor::testing::mixed {
namespace {

std::unique_ptr<Backend> make_gpu() {
  auto gpu = backend::make_cuda_backend(backend::cuda::make_test_device(), {.n_threads = 1});
  EXPECT_TRUE(gpu) << gpu.error().message;
  return std::move(*gpu);
}

TEST(mixed_cuda, random_programs_leave_the_bits_of_the_cpu) {
  expect_same_bits(make_gpu(), true, 10);
}

std::unique_ptr<ModelRunner> make_runner(const formats::ModelFile& file, std::unique_ptr<Backend> backend) {
  return ModelRunner::make(file, std::move(backend), {.max_rows = 16, .n_blocks = 8});
}

// A prompt in two chunks, a fork, and a step of both.
std::vector<Logits> run_all(ModelRunner& runner) {
  const size_t first = runner.new_sequence();
  std::vector<Logits> all;
  const auto step = [&](const std::vector<ModelRunner::Feed>& feeds) {
    for (Logits& row : runner.step(feeds)) all.push_back(std::move(row));
  };
  step({{first, {5, 60, 17, 200, 3, 42, 8}}});
  step({{first, {91, 7}}});
  const size_t fork = runner.fork(first, 9);
  step({{first, {2}}, {fork, {33, 71}}});
  return all;
}

class MixedCuda : public ::testing::TestWithParam<const char*> {};

TEST_P(MixedCuda, gives_the_bits_of_the_cpu_alone_at_every_cut) {
  const auto file = model::open_model(goldens() / GetParam());
  ASSERT_TRUE(file) << file.error().message;
  const auto spec = model::read_arch(**file);
  ASSERT_TRUE(spec);
  const auto alone = make_runner(**file, make_fast_cpu());
  ASSERT_NE(alone, nullptr);
  const std::vector<Logits> expected = run_all(*alone);
  for (const backend::Placement& placement :
       {model::place_layers(*spec, {}), model::place_layers(*spec, {.n_device_layers = 2}),
        model::place_layers(*spec, {.n_host_experts = 99}), place_at_random(*spec, 7)}) {
    auto both = std::make_unique<MixedBackend>(make_gpu(), make_fast_cpu());
    both->place_next(placement);
    const auto runner = make_runner(**file, std::move(both));
    ASSERT_NE(runner, nullptr);
    EXPECT_EQ(run_all(*runner), expected);
    EXPECT_TRUE(runner->backend().health());
  }
}

INSTANTIATE_TEST_SUITE_P(all, MixedCuda, ::testing::ValuesIn(kMixedModels),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace candor::testing::mixed
