#pragma once
// Two CPU backends as a device and a host: kernels of the slowest instruction set and of the fastest, and memories that
// know nothing of one another.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/mixed/mixed_backend.h"
#include "backend/placement.h"
#include "kernels/kernels.h"
#include "model/arch_spec.h"
#include "model/placement.h"
#include "support/random_weights.h"

namespace candor::testing {

// Goldens of families whose layers differ in kind. The others are made of the same operations.
inline constexpr const char* kMixedModels[] = {
    "llama",       "gemma2",           "gemma4_text", "gemma4_moe",     "gpt2",        "bloom",
    "falcon40",    "cohere2",          "mpt",         "qwen3moe",       "qwen2_moe",   "gpt_oss",
    "llama4_text", "deepseek_v2",      "deepseek_v3", "kimi_linear",    "qwen3_next",  "qwen3_5_moe_text",
    "lfm2_moe",    "granitemoehybrid", "falcon_h1",   "nemotron_h_moe", "olmo_hybrid", "gpt_neo",
    "afmoe",       "internlm2"};

inline std::unique_ptr<backend::Backend> make_cpu(const kernels::KernelTable* table, int32_t n_threads) {
  auto made = backend::make_cpu_backend({.n_threads = n_threads, .table = table});
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}
inline std::unique_ptr<backend::Backend> make_slow_cpu() {
  return make_cpu(kernels::runnable_tables().front(), 1);
}
inline std::unique_ptr<backend::Backend> make_fast_cpu() {
  return make_cpu(kernels::runnable_tables().back(), 2);
}

inline std::unique_ptr<backend::MixedBackend> make_two_sides(backend::Placement placement) {
  auto both = std::make_unique<backend::MixedBackend>(make_slow_cpu(), make_fast_cpu());
  both->place_next(std::move(placement));
  return both;
}

// Anything anywhere.
inline backend::Placement place_at_random(const model::ArchSpec& spec, uint64_t seed) {
  SplitMix random(seed);
  const auto side = [&] { return random.below(2) == 0 ? backend::Side::kDevice : backend::Side::kHost; };
  backend::Placement placement{.rest = side(), .input = side(), .output = side()};
  for (size_t i = 0; i < spec.blocks.size(); ++i) {
    placement.blocks.push_back(side());
    placement.experts.push_back(side());
    placement.kv_layers.push_back(side());
    placement.state_layers.push_back(side());
  }
  return placement;
}

// Every cut of layers; experts on the host, of all blocks and of the first; blocks in turn; anything anywhere.
inline std::vector<backend::Placement> placements_of(const model::ArchSpec& spec) {
  using backend::Side;
  const auto n_blocks = static_cast<int32_t>(spec.blocks.size());
  std::vector<backend::Placement> all;
  for (int32_t n = 0; n <= n_blocks + 1; ++n) all.push_back(model::place_layers(spec, {.n_device_layers = n}));
  for (const int32_t n : {1, n_blocks}) all.push_back(model::place_layers(spec, {.n_host_experts = n}));
  std::vector<Side> in_turn;
  for (int32_t i = 0; i < n_blocks; ++i) in_turn.push_back(i % 2 == 0 ? Side::kDevice : Side::kHost);
  all.push_back(model::place_parts(spec, in_turn, in_turn, Side::kHost));
  for (uint64_t seed = 1; seed <= 3; ++seed) all.push_back(place_at_random(spec, seed));
  return all;
}

}  // namespace candor::testing
