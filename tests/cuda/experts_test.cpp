// Mixtures of experts on the emulated device and on the CPU: 0 bits differ, also where experts of one layer have other
// types, and where adapters change them.

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "cuda/emulated.h"

namespace candor::testing::cuda_experts {
namespace {

using backend::Activation;
using backend::AdapterUse;
using backend::ExpertPart;
using backend::WeightRole;

constexpr int32_t kRows = 37, kCols = 64, kFfn = 32, kExperts = 6, kRank = 16;

struct Mixture {
  backend::MoeSpec spec{};
  bool is_gated = true;
  bool has_adapters = false;
};

backend::MoeSpec spec_of(int32_t n_used) {
  backend::MoeSpec spec;
  spec.n_experts = kExperts;
  spec.n_used = n_used;
  return spec;
}

// Types of three encodings in turn.
std::vector<backend::Expert> random_experts(Rig& rig, bool is_gated) {
  constexpr DType kTypes[] = {DType::kQ8_0, DType::kF32, DType::kBF16, DType::kQ4_0};
  std::vector<backend::Expert> experts(kExperts);
  for (size_t i = 0; i < experts.size(); ++i) {
    const DType dtype = kTypes[i % std::size(kTypes)];
    const auto matrix = [&](int64_t out, int64_t in, uint64_t seed) {
      return &rig.upload(random_tensor("expert", dtype, {out, in}, 10 * i + seed, 0.2f).view(), WeightRole::kLinear);
    };
    const auto bias = random_values(kFfn, 10 * i + 4);
    if (is_gated) experts[i].gate = matrix(kFfn, kCols, 1);
    experts[i].up = matrix(kFfn, kCols, 2);
    experts[i].down = matrix(kCols, kFfn, 3);
    if (i == 2) continue;
    experts[i].up_bias = &rig.upload(tensor_of("bias", DType::kF32, {kFfn}, bias).view(), WeightRole::kVector);
  }
  return experts;
}

std::vector<backend::ExpertAdapter> random_adapters(Rig& rig, bool is_gated) {
  std::vector<backend::ExpertAdapter> adapters;
  for (int32_t i = 0; i < kExperts; ++i) {
    const auto add = [&](ExpertPart part, AdapterId adapter, int64_t out, int64_t in) {
      const auto matrix = [&](int64_t n_out, int64_t n_in) {
        const auto seed = static_cast<uint64_t>(100 + adapters.size() + static_cast<size_t>(n_out));
        return &rig.upload(random_tensor("adapter", DType::kF32, {n_out, n_in}, seed, 0.2f).view(),
                           WeightRole::kLinear);
      };
      adapters.push_back({i, part, {adapter, matrix(kRank, in), matrix(out, kRank), 1.5f}});
    };
    if (is_gated) add(ExpertPart::kGate, 0, kFfn, kCols);
    if (i != 1) add(ExpertPart::kUp, 1, kFfn, kCols);
    add(ExpertPart::kDown, 0, kCols, kFfn);
  }
  return adapters;
}

void expect_equal(const Mixture& mixture) {
  expect_equal_bits([&](Rig& rig) {
    const auto& inputs = rig.upload_rows(random_values(kRows * kCols, 1), kCols);
    const auto& scores = rig.upload_rows(random_values(kRows * kExperts, 2), kExperts);
    const int32_t n_visits = kRows * mixture.spec.n_used;
    rig.reserve(6, 2 * mixture.spec.n_used * kCols, kRows);
    const auto experts = random_experts(rig, mixture.is_gated);
    const auto adapters =
        mixture.has_adapters ? random_adapters(rig, mixture.is_gated) : std::vector<backend::ExpertAdapter>{};
    backend::MoeTerm term;
    term.experts = experts;
    term.spec = mixture.spec;
    term.scores = {1, kRows, kExperts};
    term.gate = {3, n_visits, kFfn};
    term.up = {4, n_visits, kFfn};
    term.outputs = {5, n_visits, kCols};
    term.adapters = adapters;
    BatchBuilder batch;
    std::vector<TokenId> tokens(kRows);
    std::iota(tokens.begin(), tokens.end(), 0);
    const std::span all(tokens);
    batch.add(all.first(9), std::vector<AdapterUse>{{0, 1.0f}});
    batch.add(all.subspan(9, 20), std::vector<AdapterUse>{});
    batch.add(all.subspan(29), std::vector<AdapterUse>{{1, 0.5f}, {0, 2.0f}});
    return rig.run(batch.view(), [&] {
      rig.ops().run(op::Embed{{2, kRows, kCols}, &inputs, 1.0f});
      rig.ops().run(op::Embed{term.scores, &scores, 1.0f});
      rig.ops().run(op::Moe{{0, kRows, kCols}, {2, kRows, kCols}, term});
      return Activation{0, kRows, kCols};
    });
  });
}

TEST(CudaExperts, of_several_types_have_the_bits_of_the_cpu) {
  expect_equal({spec_of(2)});
  expect_equal({spec_of(kExperts)});
  expect_equal({.spec = spec_of(1), .is_gated = false});
}

TEST(CudaExperts, that_read_weighted_inputs_have_the_bits_of_the_cpu) {
  backend::MoeSpec spec = spec_of(3);
  spec.share = backend::ExpertShare::kSigmoid;
  spec.renormalise = false;
  spec.weighs_inputs = true;
  expect_equal({spec});
}

TEST(CudaExperts, with_adapters_have_the_bits_of_the_cpu) {
  for (const bool weighs_inputs : {false, true}) {
    backend::MoeSpec spec = spec_of(2);
    spec.weighs_inputs = weighs_inputs;
    expect_equal({.spec = spec, .has_adapters = true});
  }
  expect_equal({.spec = spec_of(2), .is_gated = false, .has_adapters = true});
}

}  // namespace
}  // namespace candor::testing::cuda_experts
