// Mixtures of experts on cpu against reference: experts whose weights multiply what they read, and experts with a
// number of their own.

#include <gtest/gtest.h>

#include <cmath>

#include "conformance/rig.h"

namespace candor::testing::experts {
namespace {

using backend::Activation;
using backend::WeightRole;

constexpr int32_t kRows = 37;
constexpr int32_t kCols = 160;
constexpr int32_t kExperts = 4;
constexpr int32_t kFfn = 32;

backend::Expert random_expert(Rig& rig, uint64_t seed) {
  const auto upload = [&](int64_t n_out, int64_t n_in, uint64_t part) {
    const auto n = static_cast<size_t>(n_out * n_in);
    const OwnedTensor weight =
        tensor_of("expert", DType::kF32, {n_out, n_in}, random_values(n, 100 + 3 * seed + part, 0.1f));
    return &rig.upload(weight.view(), WeightRole::kLinear);
  };
  backend::Expert expert;
  expert.gate = upload(kFfn, kCols, 0);
  expert.up = upload(kFfn, kCols, 1);
  expert.down = upload(kCols, kFfn, 2);
  return expert;
}

std::vector<float> mix(Rig rig, const backend::MoeSpec& spec, const std::vector<float>& numbers) {
  const auto& inputs = rig.upload_rows(random_values(kRows * kCols, 1), kCols);
  const auto& scores = rig.upload_rows(random_values(kRows * kExperts, 2), kExperts);
  rig.reserve(6, spec.n_used * kCols, kRows);
  std::vector<backend::Expert> experts;
  for (uint64_t seed = 0; seed < kExperts; ++seed) experts.push_back(random_expert(rig, seed));
  const OwnedTensor scales = tensor_of("scales", DType::kF32, {kExperts}, numbers);
  const backend::MoeTerm term{.experts = experts,
                              .spec = spec,
                              .kind = backend::GateKind::kSilu,
                              .scores = {1, kRows, kExperts},
                              .gate = {3, kRows * spec.n_used, kFfn},
                              .up = {4, kRows * spec.n_used, kFfn},
                              .outputs = {5, kRows * spec.n_used, kCols},
                              .choice_bias = nullptr,
                              .expert_scales = &rig.upload(scales.view(), WeightRole::kVector)};
  return rig.run(kRows, [&] {
    rig.ops().run(op::Embed{{2, kRows, kCols}, &inputs, 1.0f});
    rig.ops().run(op::Embed{term.scores, &scores, 1.0f});
    rig.ops().run(op::Moe{{0, kRows, kCols}, {2, kRows, kCols}, term});
    return Activation{0, kRows, kCols};
  });
}

backend::MoeSpec two_of_four() {
  backend::MoeSpec spec;
  spec.n_experts = kExperts;
  spec.n_used = 2;
  return spec;
}

// f32 sums of 160 and of 32 products in other orders.
void expect_agreement(const backend::MoeSpec& spec) {
  const std::vector<float> numbers = {0.5f, -2.0f, 1.0f, 3.0f};
  const std::vector<float> wanted = mix(reference_rig(), spec, numbers);
  for (const std::string& isa : runnable_isas()) {
    const std::vector<float> seen = mix(cpu_rig(2, isa), spec, numbers);
    ASSERT_EQ(seen.size(), wanted.size());
    for (size_t i = 0; i < seen.size(); ++i)
      ASSERT_NEAR(seen[i], wanted[i], 1e-4f * std::fabs(wanted[i]) + 1e-4f) << isa;
  }
}

TEST(experts, agree_where_weights_multiply_what_they_read) {
  backend::MoeSpec spec = two_of_four();
  spec.share = backend::ExpertShare::kSigmoid;
  spec.renormalise = false;
  spec.weighs_inputs = true;
  expect_agreement(spec);
}

TEST(experts, agree_where_each_has_a_number_of_its_own) {
  backend::MoeSpec spec = two_of_four();
  spec.has_expert_scales = true;
  expect_agreement(spec);
}

TEST(experts, a_number_of_their_own_multiplies_what_they_give) {
  backend::MoeSpec spec = two_of_four();
  const std::vector<float> plain = mix(reference_rig(), spec, {1.0f, 1.0f, 1.0f, 1.0f});
  spec.has_expert_scales = true;
  const std::vector<float> doubled = mix(reference_rig(), spec, {2.0f, 2.0f, 2.0f, 2.0f});
  for (size_t i = 0; i < plain.size(); ++i) ASSERT_FLOAT_EQ(doubled[i], 2.0f * plain[i]);
}

}  // namespace
}  // namespace candor::testing::experts
